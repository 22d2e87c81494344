"""Epsilon of composed Gaussian mechanisms, independently of core/privacy.cc: prints tests/golden/core/privacy.txt.

    python3 tests/reference/privacy_reference.py > tests/golden/core/privacy.txt

Each line: noise multiplier, rounds, delta, epsilon by Renyi divergence, exact epsilon. The first is the minimum over a dense scan of
orders of RDP(alpha) = rounds * alpha / (2 sigma^2) converted by Canonne, Kamath, Steinke (arXiv 2004.00010, proposition 12), in
decimal arithmetic of 40 digits. The second is what is true of the composition, which is one Gaussian mechanism of
mu = sqrt(rounds) / sigma: the epsilon at which Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) = delta (Balle, Wang, arXiv 1805.06530,
theorem 8). A bound below it would be wrong, one far above it useless.
"""
import math
from decimal import Decimal as D
from decimal import getcontext

getcontext().prec = 40


def by_renyi(sigma, rounds, delta):
    rho = D(rounds) / (2 * D(str(sigma)) ** 2)
    log_delta = D(str(delta)).ln()

    def epsilon(excess):
        alpha = 1 + excess
        return rho * alpha + (excess / alpha).ln() - (log_delta + alpha.ln()) / excess

    # Ternary search on the logarithm after a scan that finds the valley.
    scan = [D(10) ** (D(i) / 20) for i in range(-180, 240)]
    best = min(scan, key=epsilon)
    low, high = best / D("1.2"), best * D("1.2")
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if epsilon(left) < epsilon(right):
            high = right
        else:
            low = left
    return max(D(0), epsilon((low + high) / 2))


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def log_normal_cdf(x):
    if x > -30:
        return math.log(normal_cdf(x))
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log1p(-1 / (x * x))


def exact(sigma, rounds, delta):
    mu = math.sqrt(rounds) / sigma

    def delta_at(epsilon):
        second = epsilon + log_normal_cdf(-mu / 2 - epsilon / mu)
        return normal_cdf(mu / 2 - epsilon / mu) - (math.exp(second) if second < 700 else math.inf)

    low, high = 0.0, 1.0
    if delta_at(0.0) <= delta:
        return 0.0
    while delta_at(high) > delta:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


if __name__ == "__main__":
    for sigma in ("0.5", "1", "2.5", "10", "64"):
        for rounds in (1, 16, 100, 2000):
            for delta in ("1e-5", "1e-8"):
                print(sigma, rounds, delta, f"{by_renyi(sigma, rounds, delta):.15e}", f"{exact(float(sigma), rounds, float(delta)):.9e}")
