import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.Trigger;

/** A program that knows Lance tables by the settings of its session alone. */
public final class Program {
    public static void main(String[] arguments) throws Exception {
        SparkSession spark = (SparkSession) SparkSession.builder().getOrCreate();
        try {
            run(spark);
        } finally {
            spark.stop();
        }
    }

    private static void run(SparkSession spark) throws Exception {
        spark.sql("CREATE NAMESPACE lance.db");
        spark.sql("CREATE TABLE lance.db.t (id BIGINT, v STRING)");
        Dataset rows = spark.sql("SELECT id, concat('v', id) AS v FROM range(100)");
        rows.writeTo("lance.db.t").append();
        rows.write().format("lance").save("tables/by_path.lance");
        Dataset found = spark.read().format("lance").load("tables/by_path.lance").where("id < 5");
        show("by path", found);
        show("pushdown", spark.sql("EXPLAIN SELECT id FROM lance.db.t WHERE id < 5")
            .where("contains(plan, 'filters [id IS NOT NULL, id < 5]')"));
        spark.sql("MERGE INTO lance.db.t t USING (SELECT id, 'm' AS v FROM range(99, 103)) s"
            + " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *");
        spark.sql("UPDATE lance.db.t SET v = 'u' WHERE id = 1");
        spark.sql("DELETE FROM lance.db.t WHERE id = 0");
        show("changed", spark.table("lance.db.t"));
        show("merged", spark.table("lance.db.t").where("v IN ('m', 'u')"));
        spark.sql("OPTIMIZE lance.db.t");
        spark.sql("VACUUM lance.db.t DRY RUN");
        spark.sql("CALL lance.system.tag('db.t', 'first', 2)");
        show("tagged", spark.sql("SELECT * FROM lance.db.t VERSION AS OF 'first'"));
        Dataset stream = spark.readStream().format("lance").load("tables/by_path.lance");
        DataStreamWriter writer = stream.writeStream();
        writer.option("checkpointLocation", "checkpoint");
        writer.trigger(Trigger.AvailableNow());
        writer.toTable("lance.db.s").awaitTermination();
        show("stream", spark.table("lance.db.s"));
    }

    private static void show(String what, Dataset rows) {
        System.out.println("~" + what + "|" + rows.count());
    }
}
