import { writeSync } from 'node:fs';
import type { Clock } from '../../base/clock/clock.ts';
import { createLogger, formatRecord, type Logger, type LogLevel } from '../../base/log/log.ts';
import type { CommandContext } from './command.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** Records go to standard error as JSON lines; $CORACLE_LOG sets the level (default: warn). */
export function processLog(environment: CommandContext['environment'], clock: Clock): Logger {
  const wanted = environment['CORACLE_LOG'] as LogLevel | undefined;
  const level = wanted && LOG_LEVELS.includes(wanted) ? wanted : 'warn';
  return createLogger((record) => void writeSync(2, formatRecord(record, clock.now())), level);
}
