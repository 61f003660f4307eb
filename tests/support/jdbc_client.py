"""A program of a client of a Thrift server that has PyHive alone: argument 1 is the port."""

from __future__ import annotations

import sys
from contextlib import closing

from pyhive import hive

STATEMENTS = """
CREATE NAMESPACE lance.db;
CREATE TABLE lance.db.t AS SELECT id, concat('v', id) AS v FROM range(1000);
UPDATE lance.db.t SET v = 'x' WHERE id = 7;
MERGE INTO lance.db.t t USING (SELECT 7 AS id, 'm' AS v UNION ALL SELECT 5000, 'n') s
    ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DELETE FROM lance.db.t WHERE id BETWEEN 900 AND 999;
OPTIMIZE lance.db.t;
CALL lance.system.tag('db.t', 'last', 4);
SELECT id, v FROM lance.db.t WHERE id IN (7, 5000) ORDER BY id;
SELECT count(*) FROM lance.db.t VERSION AS OF 'last'
"""


def main() -> None:
    """Print the rows of each statement that has some."""
    where = hive.connect(host="127.0.0.1", port=int(sys.argv[1]), username="someone", auth="NONE")
    with closing(where) as connection, closing(connection.cursor()) as cursor:
        for statement in STATEMENTS.split(";"):
            cursor.execute(statement.strip())
            if statement.strip().startswith("SELECT"):
                for row in cursor.fetchall():
                    print("|".join(map(str, row)))
        cursor.execute("SELECT id FROM lance.db.t WHERE id = %s", (5000,))
        print(cursor.fetchone()[0])
        try:
            cursor.execute("SELECT * FROM lance.db.missing")
        except hive.OperationalError as error:
            print("TABLE_OR_VIEW_NOT_FOUND" in str(error))


if __name__ == "__main__":
    main()
