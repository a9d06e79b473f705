"""A joint score for label-sets: an independent part, mixed with the label-sets that were seen in training."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, FloatArray, IntArray, as_texts, invalid
from surelabel._kernels import mixture as kernel
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import SparseProbabilities, as_sparse_labels
from surelabel.measures.base import Frozen, costs_of, is_number, largest_within, totals_by_costs
from surelabel.measures.compressed import halves, sparse_totals
from surelabel.measures.hubs import HeldLogLoss, Hubs, log_odds_ratios
from surelabel.measures.listing import MOST_NEIGHBOURS, SeenLabelSets, Tree, make_listing
from surelabel.measures.odds import RefinedLogLoss, RefinedOdds
from surelabel.measures.separable import LogLoss

PARAMETERS = ("weight", "prior", "temperature", "neighbours", "clip", "discount", "cardinality")
# Exponents up to which a product of exponentials, and its inverse, are floats with all their digits.
_LARGEST_EXPONENT = 690.0


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture(Frozen):
    """Minus the log-likelihood of a label-set under a mixture: labels are independent, or it was seen in training.

    score(Y) = -log((1 - weight) product(Y) + weight q(Y)), where product is the independent probability that `LogLoss`
    uses, and q is a softmax over the label-sets seen in training of prior log(count) + temperature log(product).
    Label-sets that labels taken one by one make likely, but that never occur, get larger scores, and prediction sets
    get smaller. They are counted exactly: a label-set that was not seen is a member if its `LogLoss` is within the
    threshold + log(1 - weight), and the seen ones are a list to check.

    With `neighbours` above 0, each training text also counts, by so much in all, for the label-sets that differ from
    its own in one label, if they have no fewer and no more labels than label-sets of training. That pays if many new
    label-sets are unseen but close to seen ones.

    With `odds`, product is that of refined log-odds: each label's are a line in its own log-odds, or in those of all
    labels (`refine`). It stays a product over labels, so counting is as before. That pays if a classifier is too sure
    of some labels, or misses what one label says about another.

    With `hubs`, a few labels change the log-odds of all others (`with_hubs`): product is the probability of the hubs as
    they are in the label-set times that of the other labels given the hubs. For each state of the hubs, labels are
    independent again, so a prediction set is a union of sets without common members, each counted as before. That pays
    if a text leaves a frequent label open that others go with, or exclude.

    Parameters
    ----------
    weight : float
        Of the seen label-sets, in [0, 1); 0 gives `LogLoss`.
    prior : float
        How much the number of training texts with a label-set matters, 0 or more.
    temperature : float
        How much the text's probabilities matter among seen label-sets, 0 or more.
    neighbours : float
        How many texts each training text counts for, spread over all label-sets one label away; 0 or more.
    clip : float
        As of `LogLoss`.
    discount : float
        How much of the frequency of its labels is taken off a label-set's count, 0 or more: the logarithm of its weight
        in the softmax is prior log(count) - discount times the sum over its labels of log(f / (1 - f)), f the share of
        training texts with the label. The text's probabilities know how frequent labels are; what they do not know is
        which labels occur together.
    cardinality : float
        How much each label of a label-set takes off the logarithm of its weight in the softmax, 0 or more.
    seen : SeenLabelSets, optional
        Label-sets of training and how often they occur; `fit` makes it.
    odds : RefinedOdds, optional
        How log-odds are refined, of dense texts; `refine` makes it.
    hubs : Hubs, optional
        Labels that change the log-odds of others, of dense texts; `with_hubs` makes it.

    Examples
    --------
    >>> measure = Mixture(weight=0.5).fit([[1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]])
    >>> probabilities = np.array([[0.9, 0.2, 0.4]] * 2)
    >>> measure.score(measure.totals(probabilities, np.array([[1, 1, 0], [1, 0, 1]], dtype=bool))).round(3)
    array([1.727, 1.938])
    """

    weight: float = 0.9
    prior: float = 0.5
    temperature: float = 1.0
    neighbours: float = 0.0
    clip: float = 1e-6
    discount: float = 0.0
    cardinality: float = 0.0
    seen: SeenLabelSets | None = None
    odds: RefinedOdds | None = None
    hubs: Hubs | None = None

    def __post_init__(self) -> None:
        LogLoss(self.clip)
        for name in PARAMETERS:
            value: Any = getattr(self, name)
            if not is_number(value) or not 0.0 <= value < (1.0 if name == "weight" else math.inf):
                words = "in [0, 1)" if name == "weight" else "0 or more"
                raise invalid(name, "Mixture", f"a number {words}", repr(value))
            object.__setattr__(self, name, float(value))
        for what, part in (("odds", self.odds), ("hubs", self.hubs)):
            if self.seen is not None and part is not None and part.n_labels != self.seen.n_labels:
                expected = f"of {self.seen.n_labels} labels, as the label-sets of training are"
                raise invalid(what, "Mixture", expected, f"{part.n_labels}")
        if self.seen is not None and self.neighbours > 0 and self.seen.n_changes > MOST_NEIGHBOURS:
            raise InvalidInputError(
                f"The 'neighbours' parameter of Mixture must be 0 for this many labels: the label-sets of training "
                f"have {self.seen.n_changes:,} neighbours one label away, and {MOST_NEIGHBOURS:,} can be listed."
            )

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by name."""
        return {name: float(getattr(self, name)) for name in PARAMETERS}

    def __repr__(self) -> str:
        shown = [name for name in PARAMETERS if name in PARAMETERS[:3] or getattr(self, name) != getattr(Mixture, name)]
        changed = [f"{name}={getattr(self, name):g}" for name in shown]
        if self.odds is not None:
            changed.append("refined")
        if self.hubs is not None:
            changed.append(f"hubs={self.hubs.labels.tolist()}")
        return f"Mixture({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return self._values()

    def fit(self, labels: Any) -> Mixture:
        """Return a copy fitted on label-sets of proper training texts, (n, d), never of calibration texts."""
        return dataclasses.replace(self, seen=SeenLabelSets.of(labels, who="Mixture.fit"))

    def reweighted(self, **parameters: Any) -> Mixture:
        """Return a copy with other parameters, fitted on the same label-sets."""
        return dataclasses.replace(self, **parameters)

    def refine(self, probabilities: Any, labels: Any, *, across: bool = False) -> Mixture:
        """Return a copy with log-odds refined on validation texts, (m, d), never on training or calibration texts.

        With `across`, the log-odds of all labels count for each label; else each label has a slope and an offset.
        """
        given, own = as_texts(probabilities, labels, who="Mixture.refine")
        return dataclasses.replace(self, odds=RefinedOdds.of(given, own, clip=self.clip, across=across))

    def with_hubs(self, probabilities: Any, labels: Any, hubs: Sequence[int]) -> Mixture:
        """Return a copy in which hub labels change the log-odds of others, as refined so far, by validation texts.

        Parameters
        ----------
        probabilities, labels : (m, d) array-likes
            Of validation texts; never of training or calibration texts.
        hubs : sequence of int
            1 to 4 labels; sizes take as many counts as these have states. `choose_mixture` finds which pay.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.random((300, 3)) < 0.5
        >>> labels[:, 1] = labels[:, 0]
        >>> measure = Mixture(0.5).fit(labels[:100]).with_hubs(np.full((200, 3), 0.5), labels[100:], [0])
        >>> pairs = np.array([[1, 1, 0], [1, 0, 0]], dtype=bool)
        >>> bool(np.diff(measure.totals(np.full((2, 3), 0.5), pairs))[0] > 3)
        True
        """
        given, own = as_texts(probabilities, labels, who="Mixture.with_hubs")
        if not hubs or any(not 0 <= hub < given.shape[1] for hub in hubs):
            expected = f"one or more of labels 0 to {given.shape[1] - 1}"
            raise invalid("hubs", "Mixture.with_hubs", expected, repr(hubs))
        absent, present = self._base.costs(given)
        fitted = Hubs.of(absent - present, own.astype(np.float64), hubs, log_odds_ratios(self.fitted, hubs))
        return dataclasses.replace(self, hubs=fitted)

    @property
    def takes_sparse(self) -> bool:
        """Whether texts may be sparse: refined log-odds cost labels differently, also those that a text leaves out."""
        return self.odds is None and self.hubs is None

    @property
    def fitted(self) -> SeenLabelSets:
        """Label-sets seen in training; an error if the measure is not fitted."""
        seen: SeenLabelSets = self._learnt("seen", "the labels of proper training texts")
        return seen

    @property
    def n_labels(self) -> int:
        """Number of labels that the measure was fitted on."""
        return self.fitted.n_labels

    @property
    def independent(self) -> LogLoss | RefinedLogLoss | HeldLogLoss:
        """The measure of the independent part; with hubs each of `states` has its own."""
        return self._base

    @property
    def _base(self) -> LogLoss | RefinedLogLoss:
        """The measure of labels without hubs."""
        return LogLoss(self.clip) if self.odds is None else RefinedLogLoss(self.clip, self.odds)

    def to_spec(self) -> dict[str, Any]:
        """Describe the measure in plain values; `arrays` has the rest."""
        return {"kind": "mixture", "n_labels": self.n_labels, **self.parameters}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file must keep beside `to_spec`."""
        arrays: dict[str, npt.NDArray[Any]] = dict(self.fitted.arrays())
        if self.odds is not None:
            arrays["odds"] = self.odds.table
        if self.hubs is not None:
            arrays |= {"hubs": self.hubs.labels, "effects": self.hubs.table}
        return arrays

    @functools.cached_property
    def states(self) -> tuple[MixtureState, ...]:
        """The measure of label-sets with hubs in each of their states, which are those of `Hubs.states`."""
        assert self.hubs is not None
        return tuple(MixtureState(**self._values(), state=state) for state in self.hubs.states)

    def by_state(self, labels: Any) -> Iterator[tuple[int, IntArray]]:
        """Yield states that rows of labels (n, d) have, and which rows."""
        assert self.hubs is not None
        places = self.hubs.state_of(labels)
        for place in np.unique(places).tolist():
            yield place, np.flatnonzero(places == place)

    def others(self, probabilities: FloatArray) -> FloatArray:
        """Return, for each state of hubs (n, 2^h), the logarithm of the softmax's terms in all other states."""
        terms = np.full((len(probabilities), len(self.states)), -np.inf)
        for place, state in enumerate(self.states):
            if np.any(state.listing.factors > 0.0):
                texts = state.texts(probabilities)
                terms[:, place] = kernel.log_terms(texts, len(probabilities), state.listing, state.settings)
        columns = range(terms.shape[1])
        rest = [np.logaddexp.reduce(terms[:, [j for j in columns if j != i]], axis=1) for i in columns]
        return np.column_stack(rest)

    def product_losses(self, probabilities: Any, labels: Any) -> FloatArray:
        """Return minus the logarithm of the product of one label-set per text, (n,), dense or sparse."""
        if isinstance(probabilities, SparseProbabilities):
            return sparse_totals(self.independent, probabilities, labels)
        if self.hubs is None:
            return totals_by_costs(self.independent, probabilities, labels)
        losses = np.empty(len(probabilities))
        for place, rows in self.by_state(labels):
            losses[rows] = totals_by_costs(self.states[place].independent, probabilities[rows], labels[rows])
        return losses

    @functools.cached_property
    def listing(self) -> kernel.Listing:
        """The listed label-sets as `_kernels.mixture` takes them."""
        return self._whole_listing

    @functools.cached_property
    def _whole_listing(self) -> kernel.Listing:
        """The listed label-sets in all states of hubs."""
        return make_listing(self.tree, self.prior, self.neighbours, self.discount, self.cardinality)

    @property
    def tree(self) -> Tree:
        """The listed label-sets, without their weights."""
        return self.fitted.tree(self.neighbours > 0.0)

    @functools.cached_property
    def settings(self) -> kernel.Settings:
        """Parameters as `_kernels.mixture` takes them."""
        return kernel.Settings(
            -math.log1p(-self.weight),
            math.log(self.weight) if self.weight > 0.0 else -math.inf,
            self.temperature,
            float(self._whole_listing.log_prior.max()),
            -math.log(self.clip),
            int(np.diff(self.listing.starts).max()),
            self.n_labels,
            bool(np.any(self.listing.moves >= self.n_labels)),
        )

    def texts(self, probabilities: FloatArray | SparseProbabilities) -> kernel.Texts:
        """Return costs of texts as `_kernels.mixture` takes them."""
        if not isinstance(probabilities, SparseProbabilities):
            return self.texts_of_costs(*costs_of(self.independent, probabilities))
        values = np.append(probabilities.values, probabilities.unlisted)[None, :]
        absent, present = costs_of(self.independent, values)
        ratios = self._ratios(absent, present)
        group = np.array([float(absent[0, -1]), float(present[0, -1]), float(ratios[0, -1])])
        split = np.array(halves(float(absent[0, -1])))
        starts, labels = probabilities.starts, probabilities.labels
        others = np.full(len(probabilities), -np.inf)
        return kernel.Texts(starts, labels, absent, present, ratios, group, split, others)

    def texts_of_costs(self, absent: FloatArray, present: FloatArray) -> kernel.Texts:
        """Return dense texts as `_kernels.mixture` takes them, from their costs (n, d)."""
        none, others = np.empty(0, dtype=np.int64), np.full(len(absent), -np.inf)
        # As those of sparse texts are: the kernels are compiled once for both.
        none.flags.writeable = False
        ratios = self._ratios(absent, present)
        return kernel.Texts(none, none, absent, present, ratios, np.zeros(3), np.zeros(2), others)

    def _ratios(self, absent: FloatArray, present: FloatArray) -> FloatArray:
        """Return by what factors labels change the terms of the softmax."""
        # nan if a label-set's product of them may leave the range of floats: kernels add up logarithms then.
        exponents = absent - present
        exponents *= self.temperature
        limit = _LARGEST_EXPONENT / max(self.settings.most_labels, 1)
        if self.temperature * self.settings.largest_cost > limit:
            exponents[np.abs(exponents) > limit] = np.nan
        return np.exp(exponents, out=exponents)

    def nodes_of(self, labels: Any) -> IntArray:
        """Return the node of each label-set, (n,), of 0/1 rows (n, d), dense or sparse; -1 if it is not listed."""
        return self.tree.nodes_of(labels)

    def node_of(self, labels: Sequence[int]) -> int:
        """Return the node of one label-set, ascending labels; -1 if it is not listed."""
        return self.tree.node_of.get(np.array(labels, dtype=np.int64).tobytes(), -1)

    def shifted(self, thresholds: FloatArray) -> FloatArray:
        """Return the largest `LogLoss` of an unlisted label-set whose total is within each threshold; -1 if none is."""
        return largest_within(np.asarray(thresholds, dtype=np.float64), self.settings.shift)

    def _totals(self, texts: kernel.Texts, rows: IntArray, nodes: IntArray, independent: FloatArray) -> FloatArray:
        """Return the totals of label-sets, each of the text that `rows` says, from their `LogLoss` and their nodes."""
        totals = independent + self.settings.shift
        listed = np.flatnonzero(nodes >= 0)
        if len(listed):
            totals[listed] = kernel.totals_of_nodes(texts, rows[listed], nodes[listed], self.listing, self.settings)[1]
        return totals

    def totals(self, probabilities: FloatArray | SparseProbabilities, labels: Any) -> FloatArray:
        """Return scores of one label-set per text, (n,), for probabilities and labels (n, d), dense or sparse."""
        if isinstance(probabilities, SparseProbabilities):
            labels = as_sparse_labels(labels, who="Mixture.totals", shape=probabilities.shape)
        return self._totals_of_rows(probabilities, np.arange(len(probabilities)), labels)

    def totals_of_label_sets(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return the totals of many label-sets (m, d) of one text (d,); the same as `totals`."""
        return self._totals_of_rows(probabilities[None, :], np.zeros(len(labels), dtype=np.int64), labels)

    def _totals_of_rows(self, probabilities: Any, rows: IntArray, labels: Any) -> FloatArray:
        """Return the totals of label-sets (m, d), each of the text that `rows` names; equal rows are adjacent."""
        of_each = probabilities if len(rows) == len(probabilities) else probabilities[rows]
        independent, nodes = self.product_losses(of_each, labels), self.nodes_of(labels)
        if self.hubs is None:
            return self._totals(self.texts(probabilities), rows, nodes, independent)
        totals, others = np.empty(len(rows)), self.others(probabilities)
        for place, of_state in self.by_state(labels):
            state = self.states[place]
            texts = state.texts(probabilities)._replace(others=others[:, place].copy())
            totals[of_state] = state._totals(texts, rows[of_state], nodes[of_state], independent[of_state])
        return totals

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: they are scores already."""
        return totals


@dataclasses.dataclass(frozen=True, eq=False)
class MixtureState(Mixture):
    """A mixture with hubs, for label-sets in which these are in one state: labels are independent in it."""

    # What is listed in other states is in the normaliser too, so texts must come with it (`Mixture.others`).

    state: tuple[int, ...] = ()

    @functools.cached_property
    def independent(self) -> HeldLogLoss:
        """The measure of the independent part, in which label-sets in other states cost more than any other."""
        assert self.hubs is not None
        return HeldLogLoss(self._base, self.hubs, self.state, 2.0 * self.largest_total)

    @property
    def largest_total(self) -> float:
        """A number that no total of a label-set in this state comes near."""
        return 2.0 * (self.n_labels * self.settings.largest_cost + self.settings.shift + 1.0)

    @functools.cached_property
    def listing(self) -> kernel.Listing:
        """The listed label-sets, those in other states with no weight."""
        whole, inside = self._whole_listing, self.in_state
        log_prior, factors = np.where(inside, whole.log_prior, -np.inf), np.where(inside, whole.factors, 0.0)
        return whole._replace(log_prior=log_prior, factors=factors)

    @property
    def in_state(self) -> BoolArray:
        """Which nodes have the hubs in this state, (N,)."""
        assert self.hubs is not None
        tree = self.tree
        nodes = np.repeat(np.arange(len(tree.parents)), np.diff(tree.starts))
        inside = np.ones(len(tree.parents), dtype=np.bool_)
        for label, is_present in zip(self.hubs.labels.tolist(), self.state, strict=True):
            inside &= (np.bincount(nodes[tree.labels == label], minlength=len(inside)) > 0) == bool(is_present)
        return inside

    def texts_of_costs(self, absent: FloatArray, present: FloatArray) -> kernel.Texts:
        """Return dense texts as `_kernels.mixture` takes them; what hubs would cost in other states is 0."""
        return super().texts_of_costs(*self.independent.open(absent, present))
