"""Power of t tests by statsmodels (0.15.0), with which tests/statistics/test_planning.py compares simulated power.

Run in an environment with statsmodels: `python reproduction/references/planning.py`.
"""

from statsmodels.stats.power import TTestIndPower, TTestPower

if __name__ == "__main__":
    for n in (30, 100, 400):
        one, two = TTestPower(), TTestIndPower()
        effects = one.solve_power(nobs=n, alpha=0.05, power=0.8), two.solve_power(nobs1=n, alpha=0.05, power=0.8)
        print(f"{n} rows: effect of one sample {effects[0]:.4f}, of two {effects[1]:.4f}")
    for effect in (0.2, 0.5):
        rows = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
        print(f"effect {effect}: {rows:.1f} rows of one sample")
