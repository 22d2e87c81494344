"""A worker without PyTorch, and without NumPy unless asked for. Usage: plain_worker.py ADDRESS STATE_DIR [--numpy]"""
import sys

sys.modules["torch"] = None  # importing it fails
if "--numpy" not in sys.argv:
    sys.modules["numpy"] = None

import array  # noqa: E402

import atoll  # noqa: E402


def main():
    address, state_dir = sys.argv[1:3]
    if "--numpy" in sys.argv:
        import numpy
        weights = numpy.ones((2, 3), numpy.float32)
    else:
        weights = memoryview(array.array("f", [1.0] * 6)).cast("B").cast("f", (2, 3))
    with atoll.join(address, {"w": weights}, name="w0", state_dir=state_dir, progress=False) as run:
        while run.running:
            weights[0, 1] -= run.learning_rate
            run.step(loss=2.0, tokens=3, samples=3)
    published = atoll.pull(address)
    print(type(published["w"]).__name__, tuple(published["w"].shape), published.version, published["w"][0, 0], published["w"][0, 1] < 1)


if __name__ == "__main__":
    main()
