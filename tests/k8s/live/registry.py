"""A container registry on this machine (Debian's docker-registry), and whether what is in it is signed."""
import base64
import hashlib
import json
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[3]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Registry:
    """Serves without TLS and without passwords on a free port of the loopback; everything is in `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.address = f"127.0.0.1:{free_port()}"
        (self.folder / "registry.yml").write_text(
            "version: 0.1\nlog: {level: error}\n"
            f"storage: {{filesystem: {{rootdirectory: {self.folder}/registry}}, delete: {{enabled: true}}}}\n"
            f"http: {{addr: {self.address}}}\n", encoding="utf-8")
        with open(self.folder / "registry.log", "wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", self.folder / "registry.yml"], stdout=log, stderr=log)
        host, port = self.address.split(":")
        for _ in range(200):
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError((self.folder / "registry.log").read_text(encoding="utf-8"))

    def make_key(self, name):
        """A pair for signing: the files NAME.key and NAME.pub."""
        key, public = self.folder / f"{name}.key", self.folder / f"{name}.pub"
        subprocess.run(["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", key], check=True)
        subprocess.run(["openssl", "ec", "-in", key, "-pubout", "-out", public], check=True, stderr=subprocess.DEVNULL)
        return key, public

    def get(self, path, kind="application/vnd.oci.image.manifest.v1+json"):
        request = urllib.request.Request(f"http://{self.address}/v2/{path}", headers={"Accept": kind})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()

    def believed(self, repository, digest, public_key):
        """Whether the image of this digest is signed by this key, as a verifier of cosign's SIGNATURE_SPEC.md decides it: None, or
        why not. (Debian 12's skopeo and podman are built without that check.)"""
        try:
            manifest = json.loads(self.get(f"{repository}/manifests/{digest.replace(':', '-')}.sig"))
        except urllib.error.HTTPError:
            return "there is no signature"
        (layer,) = manifest["layers"]
        if layer["mediaType"] != "application/vnd.dev.cosign.simplesigning.v1+json":
            return f"the layer is {layer['mediaType']}"
        payload = self.get(f"{repository}/blobs/{layer['digest']}", "*/*")
        if f"sha256:{hashlib.sha256(payload).hexdigest()}" != layer["digest"] or len(payload) != layer["size"]:
            return "the signed text is another one"
        signed = json.loads(payload)["critical"]
        wanted = {"identity": {"docker-reference": f"{self.address}/{repository}"}, "image": {"docker-manifest-digest": digest},
                  "type": "cosign container image signature"}
        if signed != wanted:
            return f"{signed} is signed, not {wanted}"
        (self.folder / "signature").write_bytes(base64.b64decode(layer["annotations"]["dev.cosignproject.cosign/signature"]))
        done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", public_key, "-signature", self.folder / "signature"],
                              input=payload, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return None if done.returncode == 0 else "signature: " + done.stdout.decode()

    def tags(self, repository):
        done = subprocess.run(["skopeo", "list-tags", "--tls-verify=false", f"docker://{self.address}/{repository}"], check=True,
                              text=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)["Tags"]

    def close(self):
        self.process.terminate()
        self.process.wait()
