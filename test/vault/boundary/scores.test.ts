import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { TestGateway } from "../../support/gateway.ts";
import { storeRows } from "../../support/store-rows.ts";
import { type Answer, MODES } from "../../support/vault.ts";
import { EMBEDDINGS, type House, startHouse, type Workspace, workspaceOf } from "./support.ts";

/** Scores may not differ by more than this, and ranks and everything else not at all. */
const CLOSE = 1e-9;
const INSIDE = "support/a";
/** Siblings and parents whose names begin like the scope's own. */
const OUTSIDE = [
  "support",
  "supportx",
  "support-a",
  "support.a",
  "support/ab",
  "support/a-b",
  "support/b/a",
  "/",
];

/** Documents inside are about these subjects; the words of the second list occur only outside. */
const SUBJECTS = ["refund", "invoice", "warranty", "delivery", "voucher", "account", "complaint", "shipment"];
const FOREIGN = [
  "merger",
  "acquisition",
  "lawsuit",
  "settlement",
  "refunx",
  "invoyce",
  "deliverx",
  "litigation",
];
const QUERIES = [
  "refund of an invoice",
  "warranty",
  "delivery voucher account",
  // Typing errors, each as close to a word that occurs inside as to one that occurs only outside.
  "refunc",
  "invoce",
  "delivert",
  // Words that occur only outside, and misspellings of them.
  "lawsuit settlement",
  "lawsiut",
  "aquisition merger",
  "the of and",
];

let runs = 0;

/** Texts of varying length and words, the same for the same number. */
function textOf(subjects: readonly string[], number: number): string {
  const words = Array.from({ length: 12 + (number % 7) * 9 }, (_, at) => {
    const pick = (number * 31 + at * at * 7 + at) % 23;
    return pick < subjects.length ? subjects[pick] : `word${(number * 13 + at * 5) % 40}`;
  });
  return `Note ${number}: ${words.join(" ")}.`;
}

/** An answer without the time that it took. */
type Shown = Omit<Answer, "took_ms">;

async function answersOf(workspace: Workspace, token: string): Promise<Shown[]> {
  const answers: Shown[] = [];
  for (const mode of MODES) {
    for (const query of QUERIES) {
      const body = { query, mode, top_k: 20, explain: true };
      const { took_ms, ...shown } = await workspace.search(body, token);
      answers.push(shown);
    }
  }
  return answers;
}

/** Compares everything that an answer shows: scores as numbers, everything else exactly. */
function expectUnmoved(after: readonly Shown[], before: readonly Shown[]): void {
  const rounded = (answers: readonly Shown[]) =>
    JSON.parse(JSON.stringify(answers), (name, value) => (name === "score" ? 0 : value));
  expect(rounded(after)).toEqual(rounded(before));
  const scores = (answers: readonly Shown[]) =>
    answers.flatMap(({ results }) => results.map(({ score }) => score));
  const was = scores(before);
  for (const [index, score] of scores(after).entries()) {
    expect(Math.abs(score - (was[index] as number))).toBeLessThanOrEqual(CLOSE);
  }
}

/** The number of a scope's live segments, read from the store. */
async function segmentsIn(gateway: TestGateway, scope: string, name: string): Promise<number> {
  const [row] = await storeRows<{ count: number }>(
    gateway,
    `SELECT count(*) AS count FROM vault_segments AS g JOIN vault_scopes AS s ON s.id = g.scope_id
     JOIN workspaces AS w ON w.id = s.workspace_id WHERE g.live = 1 AND s.path = $1 AND w.name = $2`,
    [scope, name],
  );
  return Number(row?.count);
}

async function untilMerged(gateway: TestGateway, scope: string, name: string): Promise<void> {
  while ((await segmentsIn(gateway, scope, name)) >= 8) await Bun.sleep(5);
}

type ScoresByDocument = { readonly explain?: object | undefined; readonly scores: Record<string, number> }[];

function expectSameScores(after: ScoresByDocument, before: ScoresByDocument): void {
  for (const [index, { explain, scores }] of after.entries()) {
    expect(explain).toEqual(before[index]?.explain);
    expect(Object.keys(scores).toSorted()).toEqual(Object.keys(before[index]?.scores ?? {}).toSorted());
    for (const [id, score] of Object.entries(scores)) {
      expect(Math.abs(score - (before[index]?.scores[id] as number))).toBeLessThanOrEqual(CLOSE);
    }
  }
}

describe.each(EMBEDDINGS)("with the vectors of %s", (embeddings) => {
  let house: House;
  let gateway: TestGateway;
  beforeAll(async () => {
    house = await startHouse(embeddings);
    ({ gateway } = house);
  });
  afterAll(() => house.stop());

  describe("documents outside do not affect results inside", () => {
    let name: string;
    let workspace: Workspace;
    let token: string;
    let inside: string[];
    let before: Shown[];

    beforeEach(async () => {
      name = `scores-${++runs}`;
      workspace = workspaceOf(gateway, await gateway.workspace(name));
      token = await workspace.agent("agent", INSIDE);
      inside = [];
      for (let number = 0; number < 14; number++) {
        const scope = number % 3 === 0 ? `${INSIDE}/deep` : INSIDE;
        inside.push(
          await workspace.write({ title: `Inside ${number}`, text: textOf(SUBJECTS, number), scope }),
        );
      }
      await untilMerged(gateway, INSIDE, name);
      before = await answersOf(workspace, token);
    });

    test("documents that are added, replaced and deleted, around merges of their segments", async () => {
      const outside: string[] = [];
      for (let number = 0; number < 40; number++) {
        const scope = OUTSIDE[number % OUTSIDE.length] as string;
        const text = textOf([...FOREIGN, ...SUBJECTS.slice(0, 4)], number);
        outside.push(await workspace.write({ title: `Refund lawsuit ${number}`, text, scope }));
      }
      for (let number = 0; number < 12; number++) {
        outside.push(await workspace.write({ text: textOf(FOREIGN, number), scope: "support" }));
      }
      await untilMerged(gateway, "support", name);
      expectUnmoved(await answersOf(workspace, token), before);
      for (const id of outside.slice(0, 12)) {
        await workspace.write({ id, title: "Replaced", text: "refund ".repeat(300), scope: "supportx" });
      }
      await untilMerged(gateway, "supportx", name);
      expectUnmoved(await answersOf(workspace, token), before);
      for (const id of outside) await workspace.call("DELETE", `/v1/vault/documents/${id}`);
      expectUnmoved(await answersOf(workspace, token), before);
    }, 60_000);

    test("documents of another workspace in the same scope", async () => {
      const other = workspaceOf(gateway, await gateway.workspace(`${name}-other`));
      const ids: string[] = [];
      for (let number = 0; number < 20; number++) {
        ids.push(await other.write({ text: textOf([...SUBJECTS, ...FOREIGN], number), scope: INSIDE }));
      }
      await untilMerged(gateway, INSIDE, `${name}-other`);
      expectUnmoved(await answersOf(workspace, token), before);
      for (const id of ids) await other.call("DELETE", `/v1/vault/documents/${id}`);
      expectUnmoved(await answersOf(workspace, token), before);
    }, 60_000);

    test("a word from outside is never offered as a correction, and never prevents one", async () => {
      for (let number = 0; number < 16; number++) {
        const scope = OUTSIDE[number % OUTSIDE.length] as string;
        await workspace.write({
          text: `${FOREIGN.join(" ")} refunc invoce delivert lawsiut ${number}`,
          scope,
        });
      }
      const answers = await answersOf(workspace, token);
      expectUnmoved(answers, before);
      const shown = JSON.stringify(answers.map(({ explain }) => explain));
      for (const word of [...FOREIGN.filter((each) => !QUERIES.join(" ").includes(each)), "lawsuits"]) {
        expect(shown).not.toContain(`"${word}"`);
      }
      expect(shown).toContain('{"refunc":["refund"]}');
      expect(shown).toContain('{"invoce":["invoice"]}');
      // A caller that sees everything knows the same words, so nothing is corrected.
      const all = await workspace.search({ query: "refunc lawsiut", explain: true });
      expect(all.explain).toEqual({ corrected: {} });
    }, 60_000);

    test("merging the segments inside: the same documents have the same scores before and after", async () => {
      const byDocument = (answers: readonly Shown[]) =>
        answers.map(({ results, explain }) => ({
          explain,
          scores: Object.fromEntries(results.map(({ document_id, score }) => [document_id, score])),
        }));
      // Writing the same text again makes a new segment but the same statistics. The eighth one is merged with the
      // others.
      const count = await segmentsIn(gateway, INSIDE, name);
      for (const [number, id] of inside.entries()) {
        const scope = number % 3 === 0 ? `${INSIDE}/deep` : INSIDE;
        await workspace.write({ id, title: `Inside ${number}`, text: textOf(SUBJECTS, number), scope });
        expectSameScores(byDocument(await answersOf(workspace, token)), byDocument(before));
      }
      await untilMerged(gateway, INSIDE, name);
      expect(await segmentsIn(gateway, INSIDE, name)).toBeLessThanOrEqual(Math.max(count, 8));
      expectSameScores(byDocument(await answersOf(workspace, token)), byDocument(before));
    }, 60_000);
  });

  test("documents are added while others search: no answer shows anything outside its own boundary", async () => {
    const workspace = workspaceOf(gateway, await gateway.workspace(`busy-${++runs}`));
    const token = await workspace.agent("agent", INSIDE);
    await workspace.write({ text: textOf(SUBJECTS, 1), scope: INSIDE });
    const before = await answersOf(workspace, token);
    const writes = Array.from({ length: 60 }, (_, number) =>
      workspace.write({
        text: textOf([...SUBJECTS, ...FOREIGN], number),
        scope: OUTSIDE[number % 8] as string,
      }),
    );
    let isDone = false;
    const all = Promise.all(writes).then(() => {
      isDone = true;
    });
    do expectUnmoved(await answersOf(workspace, token), before);
    while (!isDone);
    await all;
  }, 60_000);
});
