"""A reverse proxy with TLS: nginx in front of a server, below the path /exam."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/bin"


def missing() -> str:
    """Why no proxy can be started; "" if one can."""
    for name in ("nginx", "openssl"):
        if shutil.which(name, path=_PATH) is None:
            return f"{name} is not installed (apt-get install nginx-light openssl)"
    return ""


HOST = "exams.test"
CONF = """
worker_processes 1; daemon off; master_process off; pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    location /exam/ {{
      proxy_pass http://127.0.0.1:{upstream}{target};
      {host}
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
}}
"""
WAYS = {
    "host and path forwarded": ("proxy_set_header Host $http_host;", ""),
    "host rewritten": ("", ""),
    "path removed": ("proxy_set_header Host $host;", "/"),
    "host rewritten, path removed": ("", "/"),
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def nginx(folder: Path, port: int, upstream: int, host: str, target: str) -> Iterator[None]:
    """nginx with TLS on a port, in front of another one."""
    subject = ["-subj", f"/CN={HOST}", "-days", "2", "-newkey", "rsa:2048", "-nodes", "-x509"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", "req", *subject, *files], check=True, capture_output=True)
    conf = folder / "nginx.conf"
    conf.write_text(
        CONF.format(folder=folder, port=port, upstream=upstream, host=host, target=target)
    )
    process = subprocess.Popen(
        ["nginx", "-c", str(conf), "-p", str(folder)],
        env={"PATH": _PATH},
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(20)
