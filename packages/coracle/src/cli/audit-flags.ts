/** The audit flags of `coracle up`, named as kube-apiserver's. */
import { resolve } from 'node:path';
import type { AuditSettings } from '../compose/audit-log.ts';
import { type FlagValues, flagTable, numberFlag, textFlag, UsageError } from './command.ts';

const MAX_SIZE_MIB = 100;
const MAX_BACKUPS = 10;

export const AUDIT_FLAGS = flagTable({
  'audit-log-path FILE': 'write audit events to this file, one JSON line each (default: none)',
  'audit-policy-file FILE': 'audit.k8s.io/v1 Policy; without it every request but probes, and no contents',
  'audit-log-maxsize MIB': `rotate the file at this size (default: ${MAX_SIZE_MIB})`,
  'audit-log-maxbackup N': `keep this many rotated files; 0 keeps all (default: ${MAX_BACKUPS})`,
});

/** Undefined when nothing is audited. Throws UsageError. */
export function auditSettings(flags: FlagValues): AuditSettings | undefined {
  const logPath = textFlag(flags, 'audit-log-path');
  const policyFile = textFlag(flags, 'audit-policy-file');
  const maxSizeMib = numberFlag(flags, 'audit-log-maxsize', { min: 1, max: 100_000, or: MAX_SIZE_MIB });
  const maxBackups = numberFlag(flags, 'audit-log-maxbackup', { min: 0, max: 10_000, or: MAX_BACKUPS });
  if (logPath === undefined) {
    if (policyFile !== undefined) throw new UsageError('--audit-policy-file needs --audit-log-path as well');
    return undefined;
  }
  return {
    logPath: resolve(logPath),
    ...(policyFile !== undefined && { policyFile: resolve(policyFile) }),
    maxSizeMib,
    maxBackups,
  };
}
