# Text beyond ASCII leaves as UTF-8.
print("hi")
print("Grüße, мир, 世界, שלום, 🧪")
print(ascii("naïve ☕"), len("🧪"), "🧪".encode())
