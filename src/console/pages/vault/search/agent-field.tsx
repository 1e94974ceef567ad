import type { JSX } from "preact";
import { Select, TextField } from "../../../parts/field.tsx";
import { useSession } from "../../../state/session.tsx";
import { useData } from "../../../state/use-data.ts";

const LABEL = "Search as agent";
const MOST = 200;

/** The agent whose memory is searched: chosen from a list if the reader may see it, otherwise typed. */
export function AgentField({
  value,
  change,
}: {
  readonly value: string;
  readonly change: (agent: string) => void;
}): JSX.Element | null {
  const { session, can } = useSession();
  const { data } = useData("GET /v1/agents", can("agents:read") ? { query: { limit: MOST } } : null, [
    "agent.changed",
  ]);
  // A token that acts as an agent sees only what that agent sees, and cannot search as another one.
  if (session.agent !== null) return null;
  const names = data?.data.map(({ name }) => name) ?? [];
  if (!can("agents:read") || (data !== undefined && data.next_cursor !== null)) {
    return <TextField label={LABEL} value={value} change={change} list={names} placeholder="No agent" />;
  }
  const known = value === "" || names.includes(value) ? names : [value, ...names];
  return (
    <Select
      label={LABEL}
      value={value}
      change={change}
      options={[["", "No agent: everything that you can see"], ...known.map((name) => [name, name] as const)]}
    />
  );
}
