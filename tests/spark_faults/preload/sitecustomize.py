"""Every Python process of a doomed application begins here."""

from tests.spark_faults.strikes import install

install()
