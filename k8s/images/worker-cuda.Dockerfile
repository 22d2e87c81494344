# A worker on NVIDIA GPUs. No distribution has LibTorch with CUDA, so give the folder of an unpacked libtorch-shared-with-deps
# (it includes CUDA's libraries) and, for compiling, a base image with the toolkit of the same CUDA version.
#
#   docker build -f k8s/images/worker-cuda.Dockerfile --build-context libtorch=DIR --build-arg BUILD_BASE=IMAGE \
#     -t atoll/worker-cuda:0.2.0 --build-arg REVISION=$(git rev-parse HEAD) .
#
# The node needs NVIDIA's driver and container toolkit. As in the other images, --build-arg PACKAGES=prebuilt uses a package that
# cpack has built (`cmake --preset cuda`).
ARG BASE=debian:trixie-slim
ARG BUILD_BASE=${BASE}
ARG PACKAGES=build

FROM ${BUILD_BASE} AS build
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /src
# This input changes rarely, so the layer with the compilers stays cached.
COPY scripts/setup.sh scripts/lib.sh scripts/packages.txt scripts/
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates dpkg-dev file && \
    scripts/setup.sh --groups build
COPY --from=libtorch . /opt/libtorch
COPY . .
# Shown by --version, because the sources here do not include git's data.
ARG REVISION=
# LibTorch's libraries belong to no package. They are stored next to the program and are not among its dependencies.
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset cuda -DCMAKE_PREFIX_PATH=/opt/libtorch -DATOLL_REVISION="${REVISION}" -DATOLL_BUILD_TESTS=OFF -DATOLL_BUILD_BENCH=OFF && \
    cmake --build --preset cuda --target atoll-worker atoll-model && \
    cd build/cuda && cpack --config CPackConfig.cmake -D CPACK_COMPONENTS_ALL=worker \
      -D CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS=/opt/libtorch/lib -B /packages

FROM ${BASE} AS prebuilt
ARG DEBS=build/packages
COPY ${DEBS}/atoll-worker_*.deb /packages/

FROM ${PACKAGES} AS packages

FROM ${BASE}
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Atoll worker (CUDA)" \
      org.opencontainers.image.description="Trains the model on its own data and exchanges pseudo-gradients with a coordinator" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Copy the large libraries first, because they change rarely.
COPY --from=libtorch lib/*.so* /opt/libtorch/lib/
RUN --mount=type=bind,from=packages,source=/packages,target=/packages \
    printf 'path-exclude=/usr/share/doc/*\npath-include=/usr/share/doc/*/copyright\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n' \
      >/etc/dpkg/dpkg.cfg.d/atoll && \
    echo /opt/libtorch/lib >/etc/ld.so.conf.d/libtorch.conf && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /packages/atoll-worker_*.deb && \
    ldconfig && \
    apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/*.log /var/log/apt/* /tmp/*
# The parts of the host's driver that NVIDIA's container toolkit mounts.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# The user needs no name and no home directory.
USER 65532:65532
WORKDIR /
STOPSIGNAL SIGTERM
# metrics
EXPOSE 7602
ENTRYPOINT ["/usr/bin/atoll-worker"]
CMD ["--help"]
