/** The audit log of a host: policy from a file, events to a file that is bounded. */
import { readFileSync } from 'node:fs';
import { type AuditPolicy, compilePolicy, DEFAULT_POLICY } from '@coracle/apiserver/audit/policy';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { parse } from 'yaml';
import { openRotatingFile } from '../config/rotating-file.ts';

export interface AuditSettings {
  readonly logPath: string;
  /** None = everything but probes at level Metadata. */
  readonly policyFile?: string;
  readonly maxSizeMib: number;
  readonly maxBackups: number;
}

/** Opens it. Throws an Error of one line when policy or file is not fit. */
export function openAuditLog(settings: AuditSettings, { clock, log }: { readonly clock: Clock; readonly log: Logger }) {
  const policy = readPolicy(settings.policyFile);
  try {
    const sink = openRotatingFile(settings.logPath, {
      maxBytes: settings.maxSizeMib * 1024 * 1024,
      maxBackups: settings.maxBackups,
      now: () => clock.now(),
      onError: (error) => log.error('audit events were lost', { path: settings.logPath, error: error.message }),
    });
    return { policy, sink, close: sink.close };
  } catch (error) {
    throw new Error(`--audit-log-path: ${settings.logPath} cannot be written: ${(error as Error).message}`);
  }
}

function readPolicy(path: string | undefined): AuditPolicy {
  if (path === undefined) return compilePolicy(DEFAULT_POLICY);
  try {
    return compilePolicy(parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new Error(`--audit-policy-file: ${path}: ${(error as Error).message}`);
  }
}
