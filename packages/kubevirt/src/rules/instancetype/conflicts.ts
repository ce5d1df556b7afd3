/** What an instance type and a virtual machine both want to say, and the texts upstream has for it. */
import type { FieldError } from '@coracle/apimachinery/meta/status';

/** One field that both set. `message` replaces the usual text. */
export interface Conflict {
  readonly path: string;
  readonly message?: string;
}

/** The paths in one line, as upstream joins them. */
export const conflictPaths = (conflicts: readonly Conflict[]): string => conflicts.map(({ path }) => path).join(', ');

const text = (paths: string): string => `VM field(s) ${paths} conflicts with selected instance type`;

/** All conflicts as one error text: what the expand endpoints and the capture of revisions answer. */
export const conflictsMessage = (conflicts: readonly Conflict[]): string => text(conflictPaths(conflicts));

/** The text with which an instance is not started (kubevirt pkg/instancetype/controller/vm). */
export const startConflictsMessage = (conflicts: readonly Conflict[]): string =>
  `VMI conflicts with instancetype spec in fields: [${conflictPaths(conflicts)}]`;

/** One cause each, as the validating webhook lists them. */
export const conflictCauses = (conflicts: readonly Conflict[]): FieldError[] =>
  conflicts.map(({ path, message }) => ({ type: 'FieldValueInvalid', field: path, detail: message ?? text(path) }));
