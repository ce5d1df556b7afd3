/** Conflicts of server-side apply and their 409. */
import { ApiError } from '../meta/status.ts';
import { pathText } from './field-set.ts';
import type { Manager } from './managers.ts';

/** One field that another manager owns and this apply would change. */
export interface ApplyConflict {
  readonly manager: Pick<Manager, 'manager' | 'operation' | 'apiVersion' | 'subresource'>;
  /** Path elements in stored spelling. */
  readonly path: readonly string[];
}

function managerText({ manager }: ApplyConflict): string {
  let text = JSON.stringify(manager.manager);
  if (manager.subresource !== '') text += ` with subresource ${JSON.stringify(manager.subresource)}`;
  return manager.operation === 'Update' ? `${text} using ${manager.apiVersion}` : text;
}

/** What managers are ordered by in a message: upstream's identifier, which is the JSON of an entry. */
const sortName = ({ manager: { manager, operation, apiVersion, subresource } }: ApplyConflict): string =>
  JSON.stringify({
    ...(manager !== '' && { manager }),
    operation,
    ...(operation === 'Update' && { apiVersion }),
    ...(subresource !== '' && { subresource }),
  });

/** Conflicts reported in one answer. Upstream has no bound: an apply of 0.7 MB would be answered with 8 MB. */
const REPORTED_CONFLICTS = 1000;

/** 409 with one cause per field; kubectl reads the causes. */
export function applyConflictError(conflicts: readonly ApplyConflict[]): ApiError {
  const causes = conflicts.slice(0, REPORTED_CONFLICTS).map((conflict) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${managerText(conflict)}`,
    field: pathText(conflict.path),
  }));
  return new ApiError({ code: 409, reason: 'Conflict', message: conflictMessage(conflicts), details: { causes } });
}

function conflictMessage(conflicts: readonly ApplyConflict[]): string {
  const first = conflicts[0];
  if (conflicts.length === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${managerText(first)}: ${pathText(first.path)}`;
  }
  const byManager = Map.groupBy(conflicts.slice(0, REPORTED_CONFLICTS), sortName);
  const lines = [...byManager.keys()].sort().flatMap((name) => {
    const own = byManager.get(name)!;
    return [`conflicts with ${managerText(own[0]!)}:`, ...own.map(({ path }) => `- ${pathText(path)}`)];
  });
  if (conflicts.length > REPORTED_CONFLICTS) lines.push(`and ${conflicts.length - REPORTED_CONFLICTS} more`);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}
