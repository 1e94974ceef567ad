import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { plural, Time } from "../../parts/text.tsx";

/** How many approvals are needed, and who has given one. */
export function VotesText({ approval }: { readonly approval: Approval }): JSX.Element {
  const { required, approved_by: said } = approval;
  if (said.length === 0) {
    return <>{required === 1 ? "One person has to approve" : `${required} people have to approve`}</>;
  }
  const left = required - said.length;
  return (
    <>
      {said.map(({ person, decided_at }, index) => (
        <span key={person}>
          {index > 0 && ", "}
          {person} (<Time at={decided_at} />)
        </span>
      ))}{" "}
      {required > 1 && `· ${said.length} of ${required}`}
      {approval.status === "pending" &&
        left > 0 &&
        `, ${plural(left, "more person has", "more people have")} to`}
    </>
  );
}
