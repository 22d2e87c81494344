#!/usr/bin/env python3
"""Builds the images, and runs the rendered pods of k8s/overlays/dev from them.

containers_test.py BUILD_DIR. Needs root, podman, buildah, runc, debootstrap and a Debian mirror; exit code 77: not here.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from live.engine import Engine, skip  # noqa: E402
from live.images import WORKER, build_images  # noqa: E402
from live.training import pods_train  # noqa: E402


def main():
    try:
        import grpc  # noqa: F401
    except ImportError:
        skip("python3-grpcio is not installed")
    engine = Engine()
    try:
        built = build_images(engine, pathlib.Path(sys.argv[1]))
        if WORKER in built:
            pods_train(engine)
        else:
            print("this build has no atoll-worker, so that nothing trains")
    finally:
        engine.close()
    print("all is well")


if __name__ == "__main__":
    main()
