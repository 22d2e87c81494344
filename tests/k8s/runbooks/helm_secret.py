"""The one object that helm sends as protobuf: the Secret of a release. Fields as in Kubernetes' generated.proto of core/v1 and
meta/v1; around it is "k8s\\0" and a runtime.Unknown."""
import base64
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from protobuf import fields  # noqa: E402

MAGIC = b"k8s\0"


def entry(data):
    found = dict(fields(data))
    return found[1].decode(), found.get(2, b"")


def secret(body):
    """The JSON form of it; ValueError when it is something else."""
    unknown = dict(fields(body[len(MAGIC):]))
    kind = dict(fields(unknown[1]))
    if kind.get(2) != b"Secret":
        raise ValueError(f"protobuf of a {kind.get(2)}")
    metadata, data, of_type = {"labels": {}}, {}, "Opaque"
    for number, value in fields(unknown[2]):
        if number == 1:
            for inner, text in fields(value):
                if inner in (1, 3):
                    metadata["name" if inner == 1 else "namespace"] = text.decode()
                elif inner == 11:
                    key, label = entry(text)
                    metadata["labels"][key] = label.decode()
        elif number == 2:
            key, text = entry(value)
            data[key] = base64.b64encode(text).decode()
        elif number == 3:
            of_type = value.decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": of_type, "data": data}
