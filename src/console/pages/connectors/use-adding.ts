import { useState } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { type Action, useAction } from "../../state/use-action.ts";
import type { DraftResult } from "./drafts.ts";
import { nameError } from "./names.ts";

const NONE: ReadonlyMap<string, string> = new Map();

export interface AddConnector {
  readonly action: Action;
  /** Errors by JSON pointer. */
  readonly errors: ReadonlyMap<string, string>;
  /** @returns the new connector; undefined if the page or the server refused it */
  add(drafted: DraftResult): Promise<Connector | undefined>;
}

/** Adds one connector. Keeps nothing of what is sent. */
export function useAdding(): AddConnector {
  const action = useAction();
  const [errors, setErrors] = useState(NONE);
  return {
    action,
    errors,
    async add(drafted) {
      action.clear();
      const found = localErrors(drafted);
      setErrors(found);
      const { body } = drafted;
      if (found.size > 0 || body === undefined) return undefined;
      return action.run(async () => {
        try {
          return await call("POST /v1/connectors", { body });
        } catch (error) {
          if (error instanceof ApiProblem) setErrors(errorsOf(error));
          throw error;
        }
      });
    },
  };
}

/** Errors found by the page itself, without a call. */
export function localErrors({ body, errors }: DraftResult): ReadonlyMap<string, string> {
  if (errors) return errors;
  const wrong = nameError(body.name);
  return wrong === undefined ? NONE : new Map([["/name", wrong]]);
}

/** A name already in use is shown as an error of the name field. */
export function errorsOf({ code, fields }: ApiProblem): ReadonlyMap<string, string> {
  return code === "connector_exists" ? new Map([["/name", "is taken"]]) : fields;
}
