import type { JSX } from "preact";
import type { FoundPassage } from "../../../../http/api.ts";
import { Facts } from "../../../parts/page.tsx";
import { plural, shortId } from "../../../parts/text.tsx";
import type { SearchMode } from "../address.ts";

type ResultExplanation = NonNullable<FoundPassage["explain"]>;
type ExplanationPart = NonNullable<ResultExplanation["keyword"]>;

const ORDER: Readonly<Record<SearchMode, string>> = {
  hybrid: "of words and vectors",
  keyword: "of words",
  vector: "of vectors",
};

/** Explains a passage's rank, in the order in which a search computes it. */
export function Why({
  explain,
  score,
  mode,
}: {
  readonly explain: ResultExplanation;
  readonly score: number;
  readonly mode: SearchMode;
}): JSX.Element {
  const { keyword, vector, recency, duplicates } = explain;
  return (
    <details class="vault-why">
      <summary>Why this rank</summary>
      <Facts
        of={[
          [
            "Score",
            <span key="score">
              <span class="number">{numberText(score)}</span>, {ORDER[mode]}
            </span>,
          ],
          ["By words", keyword ? wordsText(keyword) : "Not used"],
          ["By vectors", vector ? vectorText(vector) : noVectorText(mode)],
          recency === null ? null : ["By age", `The score was multiplied by ${numberText(recency)}`],
          [
            "Omitted duplicates",
            duplicates.length === 0 ? (
              "No duplicates"
            ) : (
              <span key="duplicates">
                {plural(duplicates.length, "passage with", "passages with")} the same content:{" "}
                <code class="break">{duplicates.map(shortId).join(", ")}</code>
              </span>
            ),
          ],
        ]}
      />
    </details>
  );
}

function wordsText({ rank, score }: ExplanationPart): string {
  if (rank === null) return "None of the words occurs in it, its title or its headings";
  return `Number ${rank} by words, score ${numberText(score)}`;
}

function vectorText({ rank, score }: ExplanationPart): string {
  if (rank === null) return `Not similar: ${numberText(score)}`;
  return `Number ${rank} by vector, similarity ${numberText(score)}`;
}

function noVectorText(mode: SearchMode): string {
  return mode === "keyword" ? "Not used" : "Not compared, or no vector";
}

function numberText(value: number): string {
  return value.toFixed(value !== 0 && Math.abs(value) < 0.001 ? 6 : 3);
}
