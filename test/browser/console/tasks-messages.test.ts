/** Attachments, output schemas and conversations in the console's tasks. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { run } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);

let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.agent("helper");
  await stage.gateway.agent("other");
});
afterAll(() => stage.close());

let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing) await close();
  closing = [];
});
const open: TestConsole["open"] = async (...given) => {
  const opened = await stage.open(...given);
  closing.push(opened.close);
  return opened;
};

const unexpected = (complaints: readonly string[]) => complaints.filter((one) => !one.includes("401"));
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true });
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });
const newest = async () => (await stage.gateway.call("GET", "/v1/tasks?limit=1")).body.data[0];
const whole = async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body;
const PNG = Buffer.from("a picture of a heron");

test("a task is run with attachments and a schema, and its page shows them", async () => {
  stage.model.script("small", { chunks: ['{"bird":"heron"}'] });
  const { page, complaints } = await open("/tasks?new=helper");
  await field(page, "Prompt").fill("Which bird is this?");
  await field(page, "Add files").setInputFiles([
    { name: "bird.png", mimeType: "image/png", buffer: PNG },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("seen at dawn") },
  ]);
  await page.getByText("image/png, 20 bytes").waitFor();
  await button(page, "Ask for JSON").click();
  await field(page, "JSON Schema").fill("{");
  await page.getByText("This is not a JSON object.").waitFor();
  expect(await button(page, "Run the task").isDisabled()).toBe(true);
  await field(page, "JSON Schema").fill('{"type":"object","required":["bird"]}');
  expect(await axe(page)).toEqual([]);
  await button(page, "Run the task").click();
  await page.getByRole("heading", { level: 1, name: "Which bird is this?" }).waitFor();
  await page.getByText("Image: image/png, 20 bytes").waitFor();
  await page.getByRole("heading", { name: "Output schema" }).waitFor();
  expect(await axe(page)).toEqual([]);
  const task = await whole((await newest()).id);
  expect(task.messages).toEqual([
    {
      role: "user",
      content: [
        { type: "image", media_type: "image/png", data: PNG.toString("base64") },
        { type: "file", media_type: "text/plain", data: Buffer.from("seen at dawn").toString("base64") },
        { type: "text", text: "Which bird is this?" },
      ],
    },
  ]);
  expect(task.output_schema).toEqual({ type: "object", required: ["bird"] });
  expect(unexpected(complaints)).toEqual([]);
});

test("a file is removed again, and too large ones are refused before anything is sent", async () => {
  const { page } = await open("/tasks?new=helper");
  await field(page, "Prompt").fill("Without it");
  await field(page, "Add files").setInputFiles({ name: "a.png", mimeType: "image/png", buffer: PNG });
  await button(page, "Remove a.png").click();
  await field(page, "Add files").setInputFiles({
    name: "huge.png",
    mimeType: "image/png",
    buffer: Buffer.alloc(7 * 1024 * 1024, 1),
  });
  await page.getByText("the limit is").waitFor();
  await button(page, "Run the task").click();
  await page.getByRole("heading", { level: 1, name: "Without it" }).waitFor();
  expect((await newest()).prompt).toBe("Without it");
});

test("a finished task is continued with its agent, and the pages lead to each other", async () => {
  stage.model.script("small", { chunks: ["Hello Ada."] });
  const first = await run(stage.gateway, { agent: "helper", prompt: "My name is Ada." });
  const { page, complaints } = await open(`/tasks/${first.id}`);
  await link(page, "Continue").click();
  await page.getByRole("dialog", { name: "Continue" }).waitFor();
  await page.getByText("It continues the conversation of").waitFor();
  const agents = await field(page, "Agent").last().locator("option").allTextContents();
  expect(agents).toEqual(["Choose an agent …", "helper"]);
  stage.model.script("small", { chunks: ["Ada."] });
  await field(page, "Prompt").fill("Who am I?");
  await button(page, "Run the task").click();
  await page.getByRole("heading", { level: 1, name: "Who am I?" }).waitFor();
  const second = await newest();
  expect(second).toMatchObject({ agent: "helper", prompt: "Who am I?", continues: first.id });
  await page.locator(`a[href="/console/tasks/${first.id}"]`).first().click();
  await page.getByRole("heading", { level: 1, name: "My name is Ada." }).waitFor();
  expect(unexpected(complaints)).toEqual([]);
});

test("a task with messages is run again as it was", async () => {
  stage.model.script("small", { chunks: ["A heron."] });
  const messages = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hello." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is this bird?" },
        { type: "image", media_type: "image/png", data: PNG.toString("base64") },
      ],
    },
  ];
  const first = await run(stage.gateway, { agent: "helper", prompt: undefined, messages });
  const { page } = await open(`/tasks/${first.id}`);
  await page.getByRole("heading", { level: 1, name: "What is this bird?" }).waitFor();
  await link(page, "Run again").click();
  await page.getByRole("dialog").getByText("Image: image/png, 20 bytes").waitFor();
  await button(page, "Run the task").click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("heading", { level: 1, name: "What is this bird?" }).waitFor();
  const second = await newest();
  expect(second.id).not.toBe(first.id);
  expect((await whole(second.id)).messages).toEqual(messages);
});
