# A worker on CPUs, with the distribution's LibTorch.
#
#   docker build -f k8s/images/worker-cpu.Dockerfile -t atoll/worker-cpu:0.2.0 --build-arg REVISION=$(git rev-parse HEAD) .
#
# The build stage compiles the packages. With --build-arg PACKAGES=prebuilt it uses packages that cpack has built (build/packages,
# or DEBS); they must be for the same Debian release as BASE.
ARG BASE=debian:trixie-slim
ARG PACKAGES=build

FROM ${BASE} AS build
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /src
# This input changes rarely, so the layer with the compilers stays cached.
COPY scripts/setup.sh scripts/lib.sh scripts/packages.txt scripts/
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates dpkg-dev file && \
    scripts/setup.sh --groups build,torch
COPY . .
# Shown by --version, because the sources here do not include git's data.
ARG REVISION=
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DATOLL_REVISION="${REVISION}" -DATOLL_BUILD_TESTS=OFF -DATOLL_BUILD_BENCH=OFF -DATOLL_WITH_TORCH=ON && \
    cmake --build --preset release --target atoll-worker atoll-model && \
    cd build/release && cpack --config CPackConfig.cmake -D CPACK_COMPONENTS_ALL=worker -B /packages

FROM ${BASE} AS prebuilt
ARG DEBS=build/packages
COPY ${DEBS}/atoll-worker_*.deb /packages/

FROM ${PACKAGES} AS packages

FROM ${BASE}
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Atoll worker (CPU)" \
      org.opencontainers.image.description="Trains the model on its own data and exchanges pseudo-gradients with a coordinator" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# The package lists the libraries that it needs. Documentation and apt's files are not copied.
RUN --mount=type=bind,from=packages,source=/packages,target=/packages \
    printf 'path-exclude=/usr/share/doc/*\npath-include=/usr/share/doc/*/copyright\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n' \
      >/etc/dpkg/dpkg.cfg.d/atoll && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /packages/atoll-worker_*.deb && \
    apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/*.log /var/log/apt/* /tmp/*

# The user needs no name and no home directory.
USER 65532:65532
WORKDIR /
STOPSIGNAL SIGTERM
# metrics
EXPOSE 7602
ENTRYPOINT ["/usr/bin/atoll-worker"]
CMD ["--help"]
