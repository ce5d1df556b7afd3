/** TPM 2.0 commands as a guest's shell sends them: TCG, TPM 2.0 Library Part 3. One NV index of eight bytes. */

const INDEX = '01500001';
/** Session of an empty password. */
const PASSWORD = '00000009400000090000000000';

/** What `NV_WRITE` stores, as `tpmCommand` prints it. */
export const nvData = '436f7261636c6531';

const command = (code: string, handles: string, parameters: string): string => {
  const body = `${code}${handles}${PASSWORD}${parameters}`;
  return `8002${(6 + body.length / 2).toString(16).padStart(8, '0')}${body}`;
};

/** Makes the index, which may be read and written by its own empty password and the owner's. */
export const NV_DEFINE = command('0000012a', '40000001', `0000000e${INDEX}000b0006000600000008`);
export const NV_WRITE = command('00000137', INDEX + INDEX, `0008${nvData}0000`);
/** Other content, as `tpmCommand` prints it, and the command that stores it. */
export const otherData = '436f7261636c6532';
export const NV_WRITE_OTHER = command('00000137', INDEX + INDEX, `0008${otherData}0000`);
export const NV_READ = command('0000014e', INDEX + INDEX, '00080000');

/** A shell command that sends it to the TPM of the guest, and prints the reply in hexadecimal. */
export const tpmCommand = (hex: string): string =>
  `exec 3<>/dev/tpm0; printf '${hex.replace(/../g, '\\x$&')}' >&3; dd bs=4096 count=1 <&3 2>/dev/null | hexdump -v -e '1/1 "%02x"'; exec 3>&-`;
