import type { Approval } from "../../../http/api.ts";

/** Whether a person has already approved. Names are compared as the server does, ignoring differences in spelling. */
export function hasApproved({ approved_by }: Pick<Approval, "approved_by">, person: string): boolean {
  const key = keyOfPerson(person);
  return approved_by.some((said) => keyOfPerson(said.person) === key);
}

const INVISIBLE = /(?!\s)\p{Cc}|\p{Cf}|\p{Default_Ignorable_Code_Point}|[\u{16fe4}\ufffc]/gu;
const BLANK = /[\u2800\u{1d159}]/gu;

function keyOfPerson(person: string): string {
  const visible = person.normalize("NFKC").replace(BLANK, " ").replace(INVISIBLE, "");
  return visible.trim().replace(/\s+/gu, " ").toLowerCase().normalize("NFKC");
}
