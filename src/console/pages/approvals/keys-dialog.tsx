import type { JSX } from "preact";
import { Dialog } from "../../parts/dialog.tsx";
import { Check } from "../../parts/field.tsx";

const KEYS: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["j", "↓"], "The next call. Arrows move while the list has the focus"],
  [["k", "↑"], "The one before"],
  [["a"], "Approve: asks once more, Enter approves"],
  [["e"], "Change the arguments, then approve them"],
  [["d"], "Deny: goes to the reason"],
  [["Ctrl", "Enter"], "While you write a reason or arguments: send the decision"],
  [["Esc"], "Leave a decision that you have begun"],
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
        label="Use single keys on this page"
        hint="They do nothing while you type. Turn them off if you speak to your browser."
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
