"""Certificates of a test's own authority."""
import shutil
import subprocess

import uwtest


def needs_openssl():
    if not shutil.which("openssl"):
        uwtest.skip_all("no openssl to make certificates with")


def openssl(*args):
    p = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise RuntimeError(p.stderr)


class Authority:
    def __init__(self, folder, name):
        self.folder = folder
        self.pem, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", self.key, "-out", self.pem)

    def certificate(self, node, host=None, days=2):
        """Of node, for the address `host`."""
        key, ask, pem, names = (self.folder / f"{node}.{end}" for end in ("key", "csr", "pem", "names"))
        names.write_text(f"subjectAltName=IP:{host or node}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=node", "-keyout", key, "-out", ask)
        openssl("x509", "-req", "-in", ask, "-CA", self.pem, "-CAkey", self.key, "-CAcreateserial", "-days", days, "-extfile", names,
                "-out", pem)
        key.chmod(0o600)
        return pem, key
