import type { JSX } from "preact";
import { Dialog } from "../../parts/dialog.tsx";
import { Check } from "../../parts/field.tsx";

const KEYS: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["j", "↓"], "Next call. Arrow keys work while the list has focus"],
  [["k", "↑"], "Previous call"],
  [["a"], "Approve, after a confirmation with Enter"],
  [["e"], "Change the arguments, then approve"],
  [["d"], "Deny, after entering a reason"],
  [["Ctrl", "Enter"], "Send the decision while writing a reason or arguments"],
  [["Esc"], "Cancel the decision"],
  [["?"], "These keys"],
];

/** Lists the keyboard shortcuts, with a switch that turns them off. */
export function KeysDialog({
  isOn,
  setOn,
  close,
}: {
  readonly isOn: boolean;
  readonly setOn: (isOn: boolean) => void;
  readonly close: () => void;
}): JSX.Element {
  return (
    <Dialog title="Keys" close={close}>
      <table class="keys">
        <thead class="unseen">
          <tr>
            <th scope="col">Key</th>
            <th scope="col">What it does</th>
          </tr>
        </thead>
        <tbody>
          {KEYS.map(([keys, what]) => (
            <tr key={what}>
              <th scope="row" class="nowrap">
                {keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Check
        label="Use keyboard shortcuts on this page"
        hint="They are inactive while you type. Turn them off if you use voice control."
        checked={isOn}
        change={setOn}
      />
      <div class="dialog-end">
        <button type="button" class="button-main" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
