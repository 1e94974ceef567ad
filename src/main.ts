import { READ_API_DOCUMENTS, READ_DOCUMENTS } from "./reading/command.ts";

const [verb, ...args] = process.argv.slice(2);
if (verb === READ_DOCUMENTS) {
  const { readDocuments } = await import("./vault/reading/process.ts");
  // Resolved from here: see `gateway.ts`.
  await readDocuments(new URL("./vault/worker.ts", import.meta.url), Number(args[0]));
} else if (verb === READ_API_DOCUMENTS) {
  const { readApiDocuments } = await import("./connectors/openapi/reading/process.ts");
  await readApiDocuments(new URL("./connectors/openapi/reading/worker.ts", import.meta.url), Number(args[0]));
} else {
  if (verb === "serve") {
    const { raiseRequestLimit } = await import("./cli/raise-request-limit.ts");
    raiseRequestLimit(new URL(import.meta.url));
  }
  await import("./base/production.ts");
  const { main } = await import("./cli/main.ts");
  await main(process.argv.slice(2));
}
