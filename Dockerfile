# docker build -t exampp . && docker run --rm exampp
FROM python:3.12-slim

COPY pyproject.toml README.md LICENSE constraints.txt /source/
COPY src /source/src
RUN pip install --no-cache-dir -c /source/constraints.txt /source

RUN useradd --create-home --uid 1000 exam
USER 1000
WORKDIR /home/exam
CMD ["exampp", "demo"]
