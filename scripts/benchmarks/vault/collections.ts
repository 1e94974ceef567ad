import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import type { Grades } from "./metrics.ts";

const CORPUS = "corpus.jsonl";
const QUERIES = "queries.jsonl";
const GRADES = "qrels.tsv";

export interface CollectionDocument {
  readonly id: string;
  /** Never empty: a document without a title has its id as its title. */
  readonly title: string;
  /** Never empty: a document with only a title has it here too. */
  readonly text: string;
}

export interface Query {
  readonly id: string;
  readonly text: string;
  /** At least one document is relevant. */
  readonly grades: Grades;
}

/** Documents, questions, and which documents answer which question. */
export interface Collection {
  readonly name: string;
  readonly documents: readonly CollectionDocument[];
  readonly queries: readonly Query[];
}

/** Folders of collections in this one, in order of their names. */
export function collectionsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name))
    .filter((path) => [CORPUS, QUERIES, GRADES].every((file) => existsSync(join(path, file))));
}

const documentLine = validator(
  Type.Object({ _id: Type.String(), title: Type.Optional(Type.String()), text: Type.String() }),
);
const queryLine = validator(Type.Object({ _id: Type.String(), text: Type.String() }));

/**
 * Reads a collection in BEIR's format: `corpus.jsonl`, `queries.jsonl`, and `qrels.tsv` with query, document and
 * grade, with or without a heading. Skips empty documents, and queries without a relevant document.
 * @throws Error if a line is invalid
 */
export function readCollection(folder: string): Collection {
  const grades = gradesOf(readFileSync(join(folder, GRADES), "utf8"));
  const documents = lines(folder, CORPUS).map((line) => documentLine.parse(JSON.parse(line)));
  const queries = lines(folder, QUERIES).map((line) => queryLine.parse(JSON.parse(line)));
  return {
    name: folder.split(/[\\/]/).at(-1) ?? folder,
    documents: documents.flatMap(({ _id, title, text }) => {
      const [heading, body] = [title?.trim() || _id, text.trim() || (title ?? "").trim()];
      return body === "" ? [] : [{ id: _id, title: heading, text: body }];
    }),
    queries: queries.flatMap(({ _id, text }) => {
      const known = grades.get(_id);
      const answered = known !== undefined && [...known.values()].some((grade) => grade > 0);
      return answered ? [{ id: _id, text, grades: known }] : [];
    }),
  };
}

/**
 * Grades by query.
 * @throws Error if a line is invalid
 */
export function gradesOf(tsv: string): Map<string, Map<string, number>> {
  const grades = new Map<string, Map<string, number>>();
  for (const [index, line] of tsv.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    const [query, document, written, ...more] = line.split("\t");
    const grade = Number(written?.trim() || Number.NaN);
    if (query === undefined || document === undefined || more.length > 0 || Number.isNaN(grade)) {
      if (index === 0) continue; // the heading
      throw new Error(`${GRADES}, line ${index + 1}: not a query, a document and a grade`);
    }
    const known = grades.get(query) ?? new Map<string, number>();
    grades.set(query, known.set(document, grade));
  }
  return grades;
}

function lines(folder: string, file: string): string[] {
  return readFileSync(join(folder, file), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "");
}
