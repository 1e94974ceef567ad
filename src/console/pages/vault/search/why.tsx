import type { JSX } from "preact";
import type { FoundPassage } from "../../../../http/api.ts";
import { Facts } from "../../../parts/page.tsx";
import { plural, shortId } from "../../../parts/text.tsx";
import type { SearchMode } from "../address.ts";

type Explained = NonNullable<FoundPassage["explain"]>;
type Part = NonNullable<Explained["keyword"]>;

const ORDER: Readonly<Record<SearchMode, string>> = {
  hybrid: "of words and vectors together",
  keyword: "of words alone",
  vector: "of vectors alone",
};

/** Explains a passage's rank, in the order in which a search computes it. */
export function Why({
  explain,
  score,
  mode,
}: {
  readonly explain: Explained;
  readonly score: number;
  readonly mode: SearchMode;
}): JSX.Element {
  const { keyword, vector, recency, duplicates } = explain;
  return (
    <details class="vault-why">
      <summary>Why it ranked here</summary>
      <Facts
        of={[
          [
            "Score",
            <span key="score">
              <span class="number">{numberText(score)}</span>, {ORDER[mode]}
            </span>,
          ],
          ["By words", keyword ? wordsText(keyword) : "Not asked for"],
          ["By vectors", vector ? vectorText(vector) : noVectorText(mode)],
          recency === null ? null : ["By age", `The score was multiplied by ${numberText(recency)}`],
          [
            "Left out for it",
            duplicates.length === 0 ? (
              "No passage that says the same"
            ) : (
              <span key="duplicates">
                {plural(duplicates.length, "passage that says", "passages that say")} the same:{" "}
                <code class="break">{duplicates.map(shortId).join(", ")}</code>
              </span>
            ),
          ],
        ]}
      />
    </details>
  );
}

function wordsText({ rank, score }: Part): string {
  if (rank === null) return "None of the question’s words is in it, its title or its headings";
  return `Number ${rank} by its words, which count ${numberText(score)}`;
}

function vectorText({ rank, score }: Part): string {
  if (rank === null) return `Not near the question: similarity ${numberText(score)}`;
  return `Number ${rank} by its vector, similarity ${numberText(score)}`;
}

function noVectorText(mode: SearchMode): string {
  return mode === "keyword" ? "Not asked for" : "Not compared, or it has none";
}

function numberText(value: number): string {
  return value.toFixed(value !== 0 && Math.abs(value) < 0.001 ? 6 : 3);
}
