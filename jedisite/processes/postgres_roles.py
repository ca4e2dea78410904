"""The site's own role in its embedded server: it owns the database and is no superuser. Imports no Django.

Whoever got hold of a superuser's password could read and write files and start programs as the server's user.
"""

from __future__ import annotations

from psycopg import Connection, sql

ROLE = "jedisite"
# It makes databases (tests, benchmarks) and may ask for a checkpoint; it makes no roles, and belongs to no other.
_MAKE = "CREATE ROLE {role} LOGIN NOSUPERUSER CREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
_CHECKPOINT = "GRANT pg_checkpoint TO {role}"
# All of ours, however it came there: until this role was made, the superuser owned it. What hangs on a table goes with it.
_TAKE_OVER = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN
        SELECT format('%s %s', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                                              ELSE 'TABLE' END, c.oid::regclass) AS what
          FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
           AND c.relowner <> {literal}::regrole
           AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                              AND c.relkind = 'S' AND d.deptype IN ('a', 'i'))
        UNION ALL
        SELECT format('ROUTINE %s', p.oid::regprocedure) FROM pg_proc p
         WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> {literal}::regrole
        UNION ALL
        SELECT format('%s %s', CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, t.oid::regtype) FROM pg_type t
         WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd') AND t.typowner <> {literal}::regrole
    LOOP
        EXECUTE format('ALTER %s OWNER TO {role}', one.what);
    END LOOP;
END $$
"""


def make_role(server: Connection, password: str) -> None:
    """Make the role, or give it this password. `server`: a superuser's connection that commits by itself."""
    role = sql.Identifier(ROLE)
    if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
        server.execute(sql.SQL(_MAKE).format(role=role))
        server.execute(sql.SQL(_CHECKPOINT).format(role=role))
    server.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(password)))


def make_database(server: Connection, name: str) -> bool:
    """Make the database as the role's, or make one that is there the role's. Whether `take_over` has to follow in it."""
    database, role = sql.Identifier(name), sql.Identifier(ROLE)
    owner = server.execute("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s", [name]).fetchone()
    if owner is None:
        server.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, role))
        return False
    return str(owner[0]) != ROLE


def take_over(database: Connection, name: str) -> None:
    """Make the role the owner of a database and of all in it, in one transaction. `database`: a superuser's connection."""
    role = sql.Identifier(ROLE)
    with database.transaction():
        database.execute(sql.SQL(_TAKE_OVER).format(role=role, literal=sql.Literal(ROLE)))
        database.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), role))
