"""Start-up hook of every Python process of an application that is killed."""

from tests.spark_faults.strikes import install

install()
