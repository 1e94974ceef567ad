import { changedId } from "../actors/deciding.ts";
import { idIn } from "../plan.ts";
import type { Seen } from "../soak.ts";

/** Tools that were called twice without being asked to, without an intent, or contrary to a person's decision. */
export function* callFaults({ world, file }: Seen): Generator<string> {
  const { receipts } = world.upstreams;
  const intents = new Map<string, number[]>();
  const outcomes = new Map(
    file.entries.filter(({ phase }) => phase === "outcome").map((entry) => [entry.ref, entry.outcome]),
  );
  for (const { seq, action, phase } of file.entries) {
    if (action !== "tool.call" || phase !== "intent") continue;
    const id = idOf(file.inputs.get(seq));
    if (id !== null) intents.set(id, [...(intents.get(id) ?? []), seq]);
  }
  for (const [id, { tool, mayRepeat, count }] of receipts) {
    const own = intents.get(id) ?? [];
    if (own.length === 0) yield `${tool} ${id} was called without an intent`;
    if (count > own.length)
      yield `${tool} ${id} was called ${count} times, for the intents ${own.join(", ")}`;
    if (!mayRepeat && count > 1) yield `${tool} ${id} was called ${count} times`;
    if (!mayRepeat && own.length > 1) yield `${tool} ${id} has the intents ${own.join(", ")}`;
  }
  for (const [id, seqs] of intents) {
    const succeeded = seqs.filter((seq) => outcomes.get(seq) === "succeeded").length;
    if (succeeded > (receipts.get(id)?.count ?? 0)) {
      yield `${id} is said to have succeeded (${seqs.join(", ")}), and was never called`;
    }
  }
  for (const { id, decision, isAcknowledged } of world.decided.values()) {
    if (!isAcknowledged || decision === "approve") continue;
    if (receipts.has(id)) yield `${id} was called, though a person had said: ${decision}`;
    if (decision === "deny" && receipts.has(changedId(id)))
      yield `${changedId(id)} was called: ${id} was denied`;
  }
  for (const { id, isAnswered } of world.ownCalls) {
    const isChanged = receipts.has(changedId(id));
    if (isAnswered && !receipts.has(id) && !isChanged) yield `${id} was answered over MCP, and never called`;
  }
}

function idOf(input: string | undefined): string | null {
  return input === undefined ? null : idIn(JSON.parse(input));
}
