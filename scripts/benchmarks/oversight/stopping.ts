import { alone, type Figure } from "../figures.ts";
import { AGENT } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { Overseen, type Stopped } from "./overseen.ts";

const OF_AGENT = 50;
/** Nearly as many as a node runs at once. */
const OF_WORKSPACE = 250;
const AGENT_AIM = { of: "gatehouse", relation: "<", value: 100 } as const;
const WORKSPACE_AIM = { of: "gatehouse", relation: "<", value: 1_000 } as const;

/** Stop buttons, measured from the request until the last upstream call is closed. */
export async function stopping(workshop: Workshop): Promise<Figure[]> {
  const dataDir = workshop.folder();
  const overseen = await Overseen.start(workshop, dataDir);
  const { gatehouse } = overseen;
  const ofAgent: Stopped[] = [];
  const ofWorkspace: Stopped[] = [];
  const ofNode: Stopped[] = [];
  for (let round = 0; round <= workshop.rounds; round++) {
    await overseen.underWay(OF_AGENT);
    const agent = await overseen.press(`/v1/agents/${AGENT}/stop`, OF_AGENT);
    await gatehouse.call(200, "POST", `/v1/agents/${AGENT}/resume`);

    await overseen.underWay(OF_WORKSPACE);
    const workspace = await overseen.press("/v1/workspace/stop", OF_WORKSPACE);
    await gatehouse.call(200, "POST", "/v1/workspace/resume");

    await overseen.underWay(OF_WORKSPACE);
    const begun = performance.timeOrigin + performance.now();
    const { code, output, ms } = await workshop.verb("stop-all", "--data", dataDir);
    if (code !== 0) throw new Error(`gatehouse stop-all: exit code ${code}: ${output}`);
    const node = { closed: (await overseen.lastClosed(OF_WORKSPACE)) - begun, answered: ms };
    await gatehouse.call(200, "POST", "/v1/workspace/resume");
    // The first round warms up.
    if (round === 0) continue;
    ofAgent.push(agent);
    ofWorkspace.push(workspace);
    ofNode.push(node);
  }
  await overseen.stop();
  return [
    ...figures("oversight.agent", `stopping an agent with ${OF_AGENT} streaming tasks`, ofAgent, AGENT_AIM),
    ...figures(
      "oversight.workspace",
      `stopping a workspace with ${OF_WORKSPACE} streaming tasks`,
      ofWorkspace,
      WORKSPACE_AIM,
    ),
    ...figures("oversight.node", "gatehouse stop-all, including its process", ofNode, WORKSPACE_AIM),
  ];
}

function figures(
  id: string,
  label: string,
  rounds: readonly Stopped[],
  aim: typeof AGENT_AIM | typeof WORKSPACE_AIM,
): Figure[] {
  return [
    alone(
      { id: `${id}.closed`, label: `${label}: last connection closed`, unit: "ms" },
      rounds.map(({ closed }) => closed),
      aim,
    ),
    alone(
      { id: `${id}.answered`, label: "  until the answer", unit: "ms" },
      rounds.map(({ answered }) => answered),
    ),
  ];
}
