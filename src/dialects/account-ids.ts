import { Problem } from "../base/errors.ts";
import { findMembers, MemberNames, membersWithin } from "./request-bytes.ts";

/** Members that name files, stores and skills of the provider's account. */
export const ACCOUNT_MEMBERS = ["file_id", "file_ids", "vector_store_ids", "skill_id"];
/** Members that clients define themselves, and in which the provider looks up nothing, in all dialects. */
export const OWN_MEMBERS = ["parameters", "input_schema", "output_schema", "schema", "metadata"];
const ID = new MemberNames(["id"]);

/**
 * Where a dialect's requests may name things in the provider's account. All workspaces share the account, and Gatehouse
 * does not know whose these are.
 */
export class AccountIds {
  readonly #names: MemberNames;
  readonly #holders: ReadonlySet<string>;
  readonly #skipped: ReadonlySet<string>;

  /**
   * @param holders the names of members that are an id, or an object with one, besides `ACCOUNT_MEMBERS`
   * @param skipped the names of further members in which nothing is looked up
   */
  constructor({ holders, skipped }: Readonly<Record<"holders" | "skipped", readonly string[]>>) {
    this.#names = new MemberNames([...ACCOUNT_MEMBERS, ...holders]);
    this.#holders = new Set(holders);
    this.#skipped = new Set([...OWN_MEMBERS, ...skipped]);
  }

  /**
   * Searches the bytes: a second member of the same name would hide the first from a parsed value.
   * @throws Problem 404 `not_found` if the request names anything in the provider's account, 400 `invalid_json`
   */
  refuseIn(bytes: Uint8Array): void {
    for (const { name, value, start } of membersWithin(bytes, this.#names, this.#skipped)) {
      const inObject = value === undefined && this.#holders.has(name) ? idAt(bytes, start) : value;
      const [id] = idsOf(inObject);
      if (id !== undefined) throw accountIdRefusal(name, id);
    }
  }
}

/** The ids in a member's value: one, or a list. */
export function idsOf(value: unknown): readonly string[] {
  return [value].flat().filter((id): id is string => typeof id === "string" && id !== "");
}

export function accountIdRefusal(name: string, id: string): Problem {
  const shown = JSON.stringify(id.slice(0, 128));
  const detail = `${name} ${shown} is kept by the provider, in an account that all workspaces share: it cannot be used.`;
  return new Problem("not_found", detail, {
    errors: [{ path: `/${name}`, message: "must not name what only the provider keeps" }],
  });
}

/** The `id` of the object that begins at `start`. */
function idAt(bytes: Uint8Array, start: number): unknown {
  const span = findMembers(bytes, ID, start).spans.get("id");
  return span && JSON.parse(Buffer.from(bytes.subarray(span.start, span.end)).toString());
}
