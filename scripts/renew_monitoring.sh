#!/usr/bin/env bash
# Regenerates the tables of docs/reference/metrics.md (from the programs' registries), the Grafana dashboards (from
# monitoring/grafana/dashboards.py) and the rules in k8s/ (from monitoring/prometheus/atoll.rules.yaml).
#   scripts/renew_monitoring.sh [BUILD_DIR]      default: build/release; build its target metrics_page first
set -Eeuo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh
build=${1:-build/release}
"$build/tests/metrics_page" docs/reference/metrics.md >docs/reference/metrics.md.new
mv docs/reference/metrics.md.new docs/reference/metrics.md
python3 -B monitoring/grafana/dashboards.py
python3 -B monitoring/prometheus/prometheus_rule.py --write
