/**
 * Whether people who cannot see a page or use a mouse can use it: axe-core's findings in a page as it is rendered
 * now.
 */
import type { Page } from "playwright-core";

const SOURCE = Bun.resolveSync("axe-core/axe.min.js", import.meta.dir);
const IMPACTS: readonly string[] = ["serious", "critical"];
const RUN = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, impact, help, nodes }) => ({
    rule: id,
    impact,
    help,
    targets: nodes.map(({ target }) => target.join(" ")),
    summary: nodes[0]?.failureSummary ?? "",
  })))`;

export interface Violation {
  /** axe-core's name of the rule, such as `color-contrast`. */
  readonly rule: string;
  readonly impact: "serious" | "critical";
  readonly help: string;
  /** Selectors of the affected elements. */
  readonly targets: readonly string[];
  /** What is wrong with the first element, with numbers. */
  readonly summary: string;
}

/**
 * Finds serious and critical violations. axe-core runs in an isolated world alongside the page's scripts, so the page's
 * content security policy applies as always, and the page cannot detect it.
 */
export async function axe(page: Page): Promise<readonly Violation[]> {
  const protocol = await page.context().newCDPSession(page);
  try {
    const { frameTree } = await protocol.send("Page.getFrameTree");
    const { executionContextId: contextId } = await protocol.send("Page.createIsolatedWorld", {
      frameId: frameTree.frame.id,
      worldName: "axe",
    });
    const run = async (expression: string): Promise<unknown> => {
      const { result, exceptionDetails } = await protocol.send("Runtime.evaluate", {
        contextId,
        expression,
        awaitPromise: true,
        returnByValue: true,
      });
      if (exceptionDetails) throw new Error(`axe-core has failed: ${JSON.stringify(exceptionDetails)}`);
      return result.value;
    };
    await run(`${await Bun.file(SOURCE).text()}\nvoid 0`);
    const found = (await run(RUN)) as readonly (Omit<Violation, "impact"> & {
      readonly impact: string | null;
    })[];
    return found.filter((violation): violation is Violation => IMPACTS.includes(violation.impact ?? ""));
  } finally {
    await protocol.detach();
  }
}
