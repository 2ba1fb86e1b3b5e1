"""Logistic regression with a ridge penalty, by Newton's method.

Source: Hastie, Tibshirani and Friedman, *The Elements of Statistical Learning* (2009), 4.4.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 50
_CLOSE = 1e-10


def fit_logistic(x: Floats, y: Floats, penalty: float = 1.0) -> Floats:
    """The intercept and the coefficients, of `x` observations x features and `y` 0 or 1.

    They minimise the sum of the log losses + penalty / 2 times the squared coefficients (the
    intercept goes without). The penalty keeps them finite where a feature separates all.
    """
    design = np.column_stack([np.ones(len(x)), x])
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 0.0
    share = np.clip(y.mean(), 1 / (len(y) + 2), 1 - 1 / (len(y) + 2))
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(share / (1 - share))
    loss = _loss(design, y, beta, ridge)
    for _ in range(_STEPS):
        p = sigmoid(_scores(design, beta))
        gradient = np.einsum("ni,n->i", design, p - y) + ridge * beta
        spread = design * (p * (1 - p))[:, None]
        hessian = np.einsum("ni,nj->ij", spread, design) + np.diag(ridge)
        hessian[0, 0] += 1e-12
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        # halved where a whole step would overshoot
        while (new := _loss(design, y, beta - size * step, ridge)) > loss and size > _CLOSE:
            size /= 2
        beta, improved, loss = beta - size * step, loss - new, new
        if improved <= _CLOSE * (1 + abs(loss)):
            break
    return beta


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), without overflow."""
    found: Floats = 0.5 * (1 + np.tanh(z / 2))
    return found


def _scores(design: Floats, beta: Floats) -> Floats:
    # einsum, for the threads of a product of small matrices wait for each other on a busy machine
    found: Floats = np.einsum("ni,i->n", design, beta)
    return found


def _loss(design: Floats, y: Floats, beta: Floats, ridge: Floats) -> float:
    z = _scores(design, beta)
    return float((np.logaddexp(0, z) - y * z).sum() + (ridge * beta**2).sum() / 2)
