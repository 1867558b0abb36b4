/** Downloads a file that the page has in memory. */
export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // By then the browser has started to read the file, also where it asks before it saves one, as on iPhones.
  setTimeout(() => URL.revokeObjectURL(url), 40_000);
}
