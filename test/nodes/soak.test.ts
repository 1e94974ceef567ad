/**
 * Three servers that are killed, frozen and cut off, and lose their database, with clocks five minutes apart.
 * `scripts/soak --nodes 3` does the same for longer.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { NodeCluster } from "../../scripts/soaking/nodes/cluster.ts";
import { type NodesEvidence, soakNodes } from "../../scripts/soaking/nodes/soak-nodes.ts";
import { missingClocks } from "../../scripts/soaking/nodes/wrong-clocks.ts";
import { missingPrograms } from "../support/postgres/database.ts";

const SECONDS = 130;
const LONGEST_MS = 600_000;
const missing = missingPrograms ?? missingClocks();
if (missing !== undefined) console.warn(`THE SOAK OF SEVERAL SERVERS IS NOT RUN: ${missing}`);

describe.skipIf(missing !== undefined)("three servers that are disturbed again and again", () => {
  let cluster: NodeCluster;
  let evidence: NodesEvidence;
  beforeAll(async () => {
    evidence = await soakNodes({
      ...{ nodes: 3, fault: "all", seconds: SECONDS, seed: 20_261_127, binary: false, tasksARound: 4 },
      // Other tests run at the same time.
      patience: 4,
      prepared: (prepared) => {
        cluster = prepared;
      },
      progress: () => {},
    });
  }, LONGEST_MS);
  afterAll(async () => {
    await cluster?.end();
    if (evidence?.world.faults.found.length === 0) cluster.remove();
  });

  test("lose no task, call no tool twice, overdraw no budget, and leave ledgers that verify", () => {
    expect(evidence.world.faults.found).toEqual([]);
  });

  test("were disturbed in several ways, and worked", () => {
    // How often depends on how long servers take to start.
    expect(evidence.happened.slice(0, 3).map(({ kind }) => kind)).toEqual(["kill", "stop", "terminate"]);
    expect(evidence.tasks.size).toBeGreaterThan(20);
    expect(evidence.world.upstreams.receipts.size).toBeGreaterThan(20);
  });
});
