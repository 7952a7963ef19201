"""Tables and figures of the paper *What Transfers from Text to Vision?* (arXiv 2608.00013)."""

from __future__ import annotations

import pandas as pd

from bayescdm.datasets.tables import read_sources, read_table
from bayescdm.errors import unknown_name

__all__ = ["PAPER_TABLES", "paper_table", "paper_tables"]

#: Name → what the table holds.
PAPER_TABLES = {
    "roster": "the 34 backbones with family, variant and size (Table 4)",
    "text_benchmarks": "the 40 text benchmarks with category and collection (Table 5)",
    "multimodal_benchmarks": "the 35 multimodal benchmarks with category (Table 6)",
    "transfer_coefficients": "λ of every text benchmark, subsets merged (Table 7)",
    "rates_by_variant": "A, B0, Bm, mean B and MAE of separate fits to base and instruct (Table 2)",
    "rates_by_family": "A, B0, Bm, mean B and MAE of separate fits to four families (Table 3)",
    "ablation": "MAE with and without the decay Bm·S (Table 1)",
    "training": "training configuration of the two stages (Table 8)",
    "published_figures": "every published number, by analysis",
}

#: Tables of published fits → the analysis they belong to, and the column that says what was fitted.
_ANALYSES = {
    "rates_by_variant": ("base-against-instruct", "variant"),
    "rates_by_family": ("families", "family"),
    "transfer_coefficients": ("transfer-coefficients", "benchmark"),
}

#: Units of the fitted quantities, with accuracy and scores as fractions.
_UNITS = {
    "A": "accuracy per score",
    "B0": "accuracy per ln D",
    "Bm": "accuracy per score and ln D",
    "mean_B": "accuracy per ln D",
    "mae": "fraction",
    "lambda": "score per score",
}


def paper_table(name: str) -> pd.DataFrame:
    """Return a published table of the paper, in fractions and absolute counts.

    Parameters
    ----------
    name : str
        ``roster``, ``text_benchmarks``, ``multimodal_benchmarks``, ``transfer_coefficients``,
        ``rates_by_variant``, ``rates_by_family``, ``ablation``, ``training`` or ``published_figures``; see
        `paper_tables`.

    Returns
    -------
    DataFrame
        The last column, ``source``, names table, section or figure. ``published_figures`` has one row a
        number: ``analysis``, ``quantity``, ``subject`` (what it was found for), ``value``, ``unit``,
        ``statement`` (what the paper says with it, in short; may be missing).

    Raises
    ------
    NotFoundError
        When there is no table of that name.

    Notes
    -----
    B0, Bm and mean B are per unit of ln D with D in the paper's unit of multimodal data; errors are
    fractions (the paper prints 10⁻² and percent). Sizes are the nominal ones of Table 4. Where Table 7
    shortens the name of a benchmark, that of Table 5 stands here, so that the two can be joined.

    Examples
    --------
    >>> paper_table("rates_by_variant")[["variant", "A", "B0", "Bm"]]
        variant      A      B0      Bm
    0      base  0.212  0.0160  0.0078
    1  instruct  0.254  0.0149  0.0104
    """
    if name not in PAPER_TABLES:
        raise unknown_name("table of the paper", name, PAPER_TABLES)
    if name == "published_figures":
        return _published_figures()
    table = read_table("paper", name)
    table["source"] = table["source"].map(read_sources("paper")["source"])
    return table


def paper_tables() -> pd.DataFrame:
    """List the published tables of the paper.

    Returns
    -------
    DataFrame, one row a table
        ``name``, for `paper_table`, and ``description``.

    Examples
    --------
    >>> paper_tables()["name"].head(3).tolist()
    ['roster', 'text_benchmarks', 'multimodal_benchmarks']
    """
    return pd.DataFrame({"name": list(PAPER_TABLES), "description": list(PAPER_TABLES.values())})


def _published_figures() -> pd.DataFrame:
    """Single figures of the text and, in the same layout, those of Tables 1, 2, 3 and 7."""
    figures = read_table("paper", "figures")
    figures["source"] = figures["source"].map(read_sources("paper")["source"])
    ablation = paper_table("ablation")
    ablation = ablation.assign(
        analysis="ablation",
        quantity="mae",
        subject=ablation["subject"] + ", " + ablation["law"],
        value=ablation["mae"],
        unit="fraction",
    )
    parts = [figures, ablation]
    for name, (analysis, subject) in _ANALYSES.items():
        table = paper_table(name).rename(columns={subject: "subject"})
        quantities = [c for c in ("A", "B0", "Bm", "mean_B", "mae", "lambda") if c in table]
        parts.append(
            table.melt(["subject", "source"], quantities, "quantity").assign(
                analysis=analysis, unit=lambda rows: rows["quantity"].map(_UNITS)
            )
        )
    return pd.concat(parts, ignore_index=True)[figures.columns]
