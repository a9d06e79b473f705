"""Data sets of many files in, data sets of answers out: on one process, or on the workers of a Dask cluster.

`predict_dataset` divides files into partitions. Each is answered by the same code as a single file
(`surelabel.streams`) and becomes one Parquet file, which is whole or not there. What a partition is made of is noted
beside it, so that a run that was interrupted, by whatever, goes on with what is missing.
"""

from surelabel.distributed.dataset import DatasetSummary, predict_dataset
from surelabel.distributed.partitions import Partition, plan_partitions

__all__ = ["DatasetSummary", "Partition", "plan_partitions", "predict_dataset"]
