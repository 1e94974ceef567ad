import { bestSentences, type SourcePassage } from "./rank.ts";
import type { PromptTexts } from "./sent-texts.ts";
import { type ConversationTurn, plain, type ToolFinding } from "./turn.ts";

const QUOTES = 3;
const QUOTE_LENGTH = 600;
const REPORT_LENGTH = 2_000;

const WRITTEN_ANSWERS = "For written answers, configure a language model.";
const WHAT_I_AM = `I am builtin/extractive: I quote what tools find and do not write text of my own. ${WRITTEN_ANSWERS}`;
const WHAT_I_QUOTE =
  "I am builtin/extractive: I quote what I was sent and what tools find, and do not write text of my own. " +
  WRITTEN_ANSWERS;

/**
 * Composes an answer from the tools' results: quotes with their sources, plain reports, and a note on who is
 * answering.
 */
export function composeAnswer({ question, results }: ConversationTurn): string {
  const passages: SourcePassage[] = [];
  const reports: string[] = [];
  for (const finding of results) {
    const found = passagesOf(finding);
    if (found) passages.push(...found);
    else reports.push(report(finding));
  }
  const sections = [quotes(question, passages), reports.join("\n"), WHAT_I_AM];
  if (passages.length === 0 && reports.length === 0) {
    sections[0] =
      results.length === 0
        ? "I have nothing to quote: none of the tools that I was offered can be called with your question."
        : "I have nothing to quote: the tools found no passages for your question.";
  }
  return sections.filter((section) => section !== "").join("\n\n");
}

/** Composes an answer from the text sent with a question: quotes of the sentences that share words with it. */
export function quoteSentTexts({ question, passages }: PromptTexts): string {
  const best = bestSentences(question, passages, QUOTES).filter(({ overlap }) => overlap > 0);
  const nothing = "I have nothing to quote: nothing else that was sent shares a word with your question.";
  const answer = best.length === 0 ? nothing : listed("From what was sent:", best);
  return `${answer}\n\n${WHAT_I_QUOTE}`;
}

function quotes(question: string, passages: readonly SourcePassage[]): string {
  const best = bestSentences(question, passages, QUOTES);
  if (best.length === 0) return "";
  const opening = best.some(({ overlap }) => overlap > 0)
    ? "From what was found:"
    : "Nothing found shares a word with your question. The closest match:";
  return listed(opening, best);
}

function listed(opening: string, best: readonly SourcePassage[]): string {
  const sources: string[] = [];
  const lines = best.map(({ text, source }) => {
    const known = sources.indexOf(source);
    const number = known < 0 ? sources.push(source) : known + 1;
    return `> “${short(text, QUOTE_LENGTH)}” [${number}]`;
  });
  const list = sources.map((source, index) => `[${index + 1}] ${source}`);
  return `${opening}\n\n${lines.join("\n\n")}\n\nSources:\n${list.join("\n")}`;
}

function report({ tool, status, value }: ToolFinding): string {
  const said = short(plain(value), REPORT_LENGTH);
  switch (status) {
    case "succeeded":
      return `${tool} answered: ${said}`;
    case "failed":
      return `${tool} failed: ${said}`;
    case "denied":
      return `${tool} was denied: ${said}`;
  }
}

/** The passages of a search result; undefined for any other result. */
function passagesOf({ status, tool, value }: ToolFinding): SourcePassage[] | undefined {
  if (status !== "succeeded" || typeof value !== "object" || value === null) return undefined;
  const results: unknown = Reflect.get(value, "results");
  if (!Array.isArray(results)) return undefined;
  const passages: SourcePassage[] = [];
  for (const result of results) {
    const text = textField(result, "text");
    if (text === undefined) return undefined;
    const title = textField(result, "title");
    const place = textField(result, "source_uri") ?? textField(result, "document_id");
    const source = [title, place].filter((part) => part !== undefined && part !== "").join(" — ");
    passages.push({ text, source: source || tool });
  }
  return passages;
}

function textField(value: unknown, name: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found: unknown = Reflect.get(value, name);
  return typeof found === "string" ? found : undefined;
}

function short(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)} […]`;
}
