/** Milliseconds as Go prints a duration (time.Duration.String): `1m30s`, `500ms`. */
export function goDuration(ms: number): string {
  if (ms === 0) return '0s';
  const [sign, amount] = ms < 0 ? ['-', -ms] : ['', ms];
  if (amount < 1000) return `${sign}${amount}ms`;
  const [hours, minutes] = [Math.floor(amount / 3_600_000), Math.floor(amount / 60_000) % 60];
  const seconds = `${(amount % 60_000) / 1000}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}
