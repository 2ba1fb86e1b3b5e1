"""Reverse proxies with TLS, nginx and caddy, in front of a server, below the path /exam."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import wait_for

_PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/bin"


def missing(proxy: str = "nginx") -> str:
    """Return the reason why a proxy cannot be started; "" if it can."""
    packages = {"nginx": "nginx-light", "caddy": "caddy"}
    for name in (proxy, "openssl"):
        if shutil.which(name, path=_PATH) is None:
            return f"{name} is not installed (apt-get install {packages[proxy]} openssl)"
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
CADDYFILE = """
{{
  admin off
  auto_https off
  default_sni {name}
}}
https://{name}:{port}, https://127.0.0.1:{port} {{
  bind 127.0.0.1
  tls {folder}/cert.pem {folder}/key.pem
  handle /exam/* {{
    {strip}
    reverse_proxy 127.0.0.1:{upstream}
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
    conf = folder / "nginx.conf"
    conf.write_text(
        CONF.format(folder=folder, port=port, upstream=upstream, host=host, target=target)
    )
    with _started(["nginx", "-c", str(conf), "-p", str(folder)], folder, port):
        yield


@contextmanager
def caddy(folder: Path, port: int, upstream: int, *, removes_path: bool) -> Iterator[None]:
    """caddy with TLS on a port, in front of another one."""
    strip = "uri strip_prefix /exam" if removes_path else ""
    conf = folder / "Caddyfile"
    conf.write_text(
        CADDYFILE.format(name=HOST, folder=folder, port=port, upstream=upstream, strip=strip)
    )
    command = ["caddy", "run", "--config", str(conf), "--adapter", "caddyfile"]
    with _started(command, folder, port):
        yield


@contextmanager
def _started(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """Start a proxy with a self-signed certificate in the folder, and wait until it listens."""
    subject = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    make = ["openssl", "req", "-x509", "-days", "2", "-newkey", "rsa:2048", "-nodes"]
    subprocess.run([*make, *subject, *files], check=True, capture_output=True)
    environment = {"PATH": _PATH, "HOME": str(folder)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    def listens() -> bool:
        assert process.poll() is None, command
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    try:
        wait_for(listens)
        yield
    finally:
        process.terminate()
        process.wait(60)
