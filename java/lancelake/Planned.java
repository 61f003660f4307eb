package lancelake;

/** A scan whose partitions, readers and metrics are planned together. */
public interface Planned {
  /** The partitions, the factory of their readers, and the metrics of the driver. */
  Object planned();
}
