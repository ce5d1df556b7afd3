/** What a word that names nothing may have meant. */

/** More than this many wrong letters are no slip of the hand. */
const MOST_EDITS = 2;
/** Fewer letters than this begin too much. */
const SHORTEST_START = 3;

/** `; did you mean NAME?`, or nothing when no name is near. */
export function didYouMean(word: string, names: Iterable<string>): string {
  const found = nearest(word, names);
  return found === undefined ? '' : `; did you mean ${found}?`;
}

/**
 * The name with the fewest letters to change, at most two and fewer than half of them, else the only one that begins so;
 * undefined when there is none.
 */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  const longer: string[] = [];
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const name of names) {
    if (word.length >= SHORTEST_START && name.startsWith(word)) longer.push(name);
    const most = Math.min(MOST_EDITS, Math.floor((Math.max(word.length, name.length) - 1) / 2), (best?.edits ?? 3) - 1);
    if (Math.abs(name.length - word.length) > most) continue;
    const edits = distance(word, name);
    if (edits <= most) best = { name, edits };
  }
  return best?.name ?? (longer.length === 1 ? longer[0] : undefined);
}

/** What the commands of other programs for machines are called here. */
const CALLED_OTHERWISE: Readonly<Record<string, string>> = {
  launch: 'create',
  run: 'create',
  new: 'create',
  shell: 'ssh',
  exec: 'ssh',
  scp: 'cp',
  ls: 'list',
  ps: 'list',
  get: 'list',
  rm: 'delete',
  info: 'why',
  describe: 'why',
  suspend: 'pause',
  resume: 'unpause',
  reboot: 'restart',
};

/** `; did you mean COMMAND?`, or nothing: also for what other programs call it. */
export const commandMeant = (word: string, commands: Iterable<string>): string =>
  didYouMean(Object.hasOwn(CALLED_OTHERWISE, word) ? CALLED_OTHERWISE[word]! : word, commands);

/** Letters to insert, leave out, change or swap with their neighbour (optimal string alignment). */
function distance(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + same);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        edits = Math.min(edits, before[j - 2]! + 1);
      row.push(edits);
    }
    before = last;
    last = row;
  }
  return last[other.length]!;
}
