import java.io.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.zip.*;

/** Prints what each archive holds, a line of JSON each: by its directory (`directory`), or by the headers on the way (`stream`). */
public class ReadZip {
  public static void main(String[] args) {
    for (String path : Arrays.asList(args).subList(1, args.length)) {
      try {
        List<String> files = args[0].equals("stream") ? stream(path) : directory(path);
        System.out.println("[" + String.join(",", files) + "]");
      } catch (Exception refused) {
        System.out.println("null");
      }
    }
  }

  static List<String> directory(String path) throws Exception {
    List<String> files = new ArrayList<>();
    try (ZipFile zip = new ZipFile(path)) {
      for (ZipEntry entry : Collections.list(zip.entries())) {
        try (InputStream content = zip.getInputStream(entry)) {
          files.add(shown(entry.getName(), content));
        }
      }
    }
    return files;
  }

  static List<String> stream(String path) throws Exception {
    List<String> files = new ArrayList<>();
    try (ZipInputStream zip = new ZipInputStream(new FileInputStream(path))) {
      for (ZipEntry entry; (entry = zip.getNextEntry()) != null; ) files.add(shown(entry.getName(), zip));
    }
    return files;
  }

  static String shown(String name, InputStream content) throws Exception {
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(content.readAllBytes());
    return "[\"" + name + "\",\"" + HexFormat.of().formatHex(hash) + "\"]";
  }
}
