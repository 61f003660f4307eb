"""Engines that run the tasks of a job, on threads or on a cluster."""
