import type { Bus } from "../../../nodes/bus.ts";
import type { ErasedResponses } from "../../../tasks/signals.ts";

const TOPIC = "responses.erased";
/** Ids in one message: they are at most 32 bytes long. */
const IDS_PER_MESSAGE = 100;

/** Tells other nodes that texts of responses were erased. MUST be called after the commit. */
export function tellErased(bus: Bus, erased: ErasedResponses): void {
  const { workspaceId: workspace } = erased;
  if ("upTo" in erased) {
    bus.send(TOPIC, { workspace, upTo: erased.upTo, ids: "" });
    return;
  }
  for (let at = 0; at < erased.ids.length; at += IDS_PER_MESSAGE) {
    const ids = erased.ids.slice(at, at + IDS_PER_MESSAGE).join(" ");
    bus.send(TOPIC, { workspace, upTo: null, ids });
  }
}

/** Calls `handle` with what other nodes have erased. */
export function listenToErased(bus: Bus, handle: (erased: ErasedResponses) => void): void {
  bus.listen(TOPIC, ({ workspace: workspaceId, upTo, ids }) => {
    if (typeof workspaceId !== "number") return;
    if (typeof upTo === "number") handle({ workspaceId, upTo });
    else if (typeof ids === "string") handle({ workspaceId, ids: ids.split(" ") });
  });
}
