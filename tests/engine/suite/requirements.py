"""What SQLAlchemy's dialect suite may expect of us, and what not, with the reason."""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

# The suite assumes that a dialect has none of these. SQLite has them all.
SUPPORTED = [
    "autocommit",
    "check_constraint_reflection",
    "computed_columns",
    "computed_columns_reflect_persisted",
    "computed_columns_stored",
    "computed_columns_virtual",
    "create_table_as",
    "ctes",
    "ctes_with_values",
    "date_historic",
    "datetime_historic",
    "datetime_literals",
    "dbapi_lastrowid",
    "except_",
    "expression_server_defaults",
    "fetch_expression",
    "fetch_offset_with_options",
    "fk_constraint_option_reflection_ondelete_noaction",
    "fk_constraint_option_reflection_ondelete_restrict",
    "fk_constraint_option_reflection_onupdate_restrict",
    "float_or_double_precision_behaves_generically",
    "foreign_key_constraint_name_reflection",
    "foreign_key_constraint_option_reflection_ondelete",
    "foreign_key_constraint_option_reflection_onupdate",
    "index_ddl_if_exists",
    "indexes_check_column_order",
    "indexes_with_expressions",
    "infinity_floats",
    "inline_check_constraint_reflection",
    "intersect",
    "isolation_level",
    "json_array_indexes",
    "json_type",
    "legacy_unconditional_json_extract",
    "mod_operator_as_percent_sign",
    "nullsordering",
    "nvarchar_types",
    "order_by_collation",
    "order_by_label_with_expression",
    "percent_schema_names",
    "precision_numerics_enotation_small",
    "precision_numerics_retains_significant_digits",
    "reflect_table_options",
    "reflects_pk_names",
    "regexp_match",
    "repeated_column_foreign_keys",
    "savepoints",
    "schemas",
    "server_defaults",
    "skip_autocommit_rollback",
    "supports_bitwise_and",
    "supports_bitwise_not",
    "supports_bitwise_or",
    "supports_bitwise_shift",
    "supports_bitwise_xor",
    "table_ddl_if_exists",
    "tuple_in",
    "tuple_in_w_empty",
    "unicode_ddl",
    "update_from",
    "view_column_reflection",
    "view_reflection",
    "views",
    "window_functions",
    "window_range",
    "window_range_numeric",
]

# SQLite has none of these, whatever the driver; the suite assumes that every dialect does.
UNSUPPORTED = {
    "implicitly_named_constraints": "SQLite does not name an unnamed constraint",
    "independent_connections": "a second engine of the suite has no test_schema attached",
    "json_index_supplementary_unicode_element": "SQLite's JSON path does not match such a key",
    "parens_in_union_contained_select_w_limit_offset": "no parentheses in a compound SELECT",
    "parens_in_union_contained_select_wo_limit_offset": "no parentheses in a compound SELECT",
    "temp_table_reflect_indexes": "a temporary table is not seen by the pool's other connections",
    "temp_table_reflection": "a temporary table is not seen by the pool's other connections",
}

# Refused by the server, or impossible without a function of our own in it.
UNSUPPORTED_REMOTE = {
    "regexp_match": "a server has no REGEXP function, and takes none from a client",
    "schemas": "a server refuses ATTACH",
}

# A function written in Python cannot be registered with libSQL's drivers.
UNSUPPORTED_LIBSQL = {"regexp_match": "the libsql driver takes no function of Python"}

# What SQLAlchemy's own dialect, which runs beside ours for comparison, does not have.
UNSUPPORTED_PYSQLITE = {"savepoints": "pysqlite begins no transaction before a SAVEPOINT"}


def _is_pysqlite(config: Any) -> bool:
    return bool(config.db.driver == "pysqlite")


def is_remote(config: Any) -> bool:
    """Tell whether a configuration of the suite names a server."""
    return bool(config.db.url.host)


def _is_libsql(config: Any) -> bool:
    return config.db.url.query.get("driver") == "libsql"


# What SQLAlchemy itself could not do then.
UNSUPPORTED_BY_2_0 = {"reflect_table_options": "SQLAlchemy reads SQLite's table options since 2.1"}

EXCLUSIONS = (
    (lambda: sqlalchemy.__version__.startswith("2.0."), UNSUPPORTED_BY_2_0),
    (lambda: True, UNSUPPORTED),
    (is_remote, UNSUPPORTED_REMOTE),
    (_is_libsql, UNSUPPORTED_LIBSQL),
    (_is_pysqlite, UNSUPPORTED_PYSQLITE),
)


def _rule(name: str) -> exclusions.compound:
    rule = exclusions.open()
    for applies, reasons in EXCLUSIONS:
        if name in reasons:
            rule += exclusions.skip_if(applies, f"excluded: {reasons[name]}")
    return rule


def _property(name: str) -> property:
    # A new rule each time: the suite adds to the one that it gets.
    return property(lambda _self: _rule(name))


_NAMES = {*SUPPORTED, *(name for _, reasons in EXCLUSIONS for name in reasons)}


class _Collation(SuiteRequirements):
    def get_order_by_collation(self, _config: Any) -> str:
        """Name a collation that sorts without regard to case."""
        return "NOCASE"


Requirements = type("Requirements", (_Collation,), {name: _property(name) for name in _NAMES})
