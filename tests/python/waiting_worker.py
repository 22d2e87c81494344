"""A process that waits for a coordinator, for as long as it takes. Usage: waiting_worker.py pull|join ADDRESS STATE_DIR"""
import sys

import atoll


def main():
    what, address, folder = sys.argv[1:]
    try:
        if what == "pull":
            print("pulled", atoll.pull(address, wait_forever=True).version)
            return
        weights = {"w": memoryview(bytearray(12)).cast("f")}
        with atoll.join(address, weights, name="w0", state_dir=folder, wait_forever=True, progress=False) as run:
            print("ended:", run.end_text)
    except KeyboardInterrupt as why:
        print(f"interrupted: {why}")


if __name__ == "__main__":
    main()
